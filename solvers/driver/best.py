"""The returned solution: the last iterate, or the best verified one if the solve failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.operations import vector
from ...core.status import Stop
from .scaling import RightHandSides, column, largest_values, norms, scale_columns

if TYPE_CHECKING:
    from ...core.executor import Array
    from .workspace import Workspace

Numbers = np.ndarray[Any, Any]


class BestIterate:
    """The iterate of the smallest true residual so far, for each column.

    The start needs no copy: it was given. Later iterates are copied where a true residual was
    found to be the smallest; a solve of one cycle makes none.

    Parameters
    ----------
    work : Workspace
        Of the solve.
    sides : RightHandSides
        Which columns are scaled.
    start : array, shape (n, k), or None
        The start of the solve, in the units of the arguments; None for zeros.
    """

    def __init__(self, work: Workspace, sides: RightHandSides, start: Array | None) -> None:
        self.work, self.sides, self.start = work, sides, start
        self.executor = work.executor
        #: Norms of the residuals of the start; unknown until it is verified.
        self.first = np.full(work.k, np.inf)
        self.prepared = False

    def prepare(self) -> None:
        """Have the workspace keep iterates that are better than the start."""
        if not self.prepared:
            self.work.make_best()
            best = self.work.best
            self.executor.copy_into(best, self.first.astype(best.dtype))
            self.prepared = True

    def keep(self) -> None:
        """Keep the iterates that were just verified where they are better than ever."""
        self.prepare()
        self.work.keep()

    def keep_columns(self, norm: Numbers) -> None:
        """Do the same for iterates within a cycle, which have these true norms."""
        self.prepare()
        work = self.work
        best = np.array(self.executor.to_host(work.best))
        running = work.status.read("stop") == Stop.RUNNING
        better = np.flatnonzero(running & (norm < best))
        for c in map(int, better):
            self._copy(work.x, work.kept, c)
            best[c] = norm[c]
        if better.size:
            self.executor.copy_into(work.best, best)

    def restore(self, columns: list[int], norm: Numbers) -> None:
        """Put the best iterates into columns of ``x`` that are worse; ``norm`` follows."""
        best = self.first
        if self.prepared and columns:
            best = self.executor.to_host(self.work.best).astype(np.float64)
        for c in columns:
            if np.isfinite(norm[c]) and norm[c] <= best[c]:
                continue
            known = best[c] < self.first[c]
            if known:
                self._copy(self.work.kept, self.work.x, c)
                norm[c] = best[c]
                # a device that runs cycles alone looks at residuals only
                known = np.isfinite(largest_values(self.executor, column(self.work.x, c))[0])
            if not known:
                self.restart(self.work.x, c, norm)
                exponents = self.sides.solution_exponents[[c]]
                scale_columns(self.executor, column(self.work.x, c), exponents)

    def restart(self, block: Array, c: int, norm: Numbers) -> None:
        """Store the start into a column, in the units of the arguments; ``norm`` follows."""
        if self.start is None or self.sides.norm[c] == 0:
            self.executor.run(vector.fill, column(block, c), 0.0)
        else:
            self._copy(self.start, block, c)
        norm[c] = self.first[c]

    def residual_norms(self) -> Numbers:
        """Return the norms of the true residual of ``x``, which ``r`` then is; not in a cycle."""
        work = self.work
        self.executor.copy_into(work.r, self.sides.block)
        work.residual.make(work.x, work.r)
        return norms(self.executor, work.r)

    def judge(
        self,
        solution: Array,
        changed: list[int],
        final: Numbers,
        norm: Numbers,
        threshold: Numbers,
    ) -> None:
        """Judge again where the solution in the units of the user is not the one that was judged.

        Parameters
        ----------
        solution : array, shape (n, k)
            The solution in the units of the arguments; columns may become the start.
        changed : list of int
            The columns that lost digits when they were scaled back.
        final, norm : array, shape (k,)
            Verdicts and norms of residuals, which belong to ``solution`` afterwards.
        threshold : array, shape (k,)
            The thresholds of the norms.
        """
        if not changed:
            return
        work = self.work
        self.executor.run(vector.axpby, solution, work.x, 1.0, 0.0)
        scale_columns(self.executor, work.x, self.sides.solution_exponents)
        found = self.residual_norms()
        found[~np.isfinite(largest_values(self.executor, solution))] = np.inf
        for c in changed:
            norm[c] = found[c]
            met = np.isfinite(found[c]) and found[c] <= threshold[c]
            if final[c] == Stop.CONVERGED and not met:
                final[c] = Stop.OUT_OF_RANGE
            if not met and not (np.isfinite(found[c]) and found[c] <= self.first[c]):
                self.restart(solution, c, norm)

    def forget_start(self, c: int) -> None:
        """Begin a column at zero instead of its start."""
        assert self.start is not None
        self.start = self.executor.copy(self.start)
        for block in (self.start, self.work.x):
            self.executor.run(vector.fill, column(block, c), 0.0)

    def _copy(self, source: Array, target: Array, c: int) -> None:
        self.executor.run(vector.axpby, column(source, c), column(target, c), 1.0, 0.0)
