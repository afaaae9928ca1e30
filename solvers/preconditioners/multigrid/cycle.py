"""The traversal of the levels: V, W, F and K cycles, as operations of an executor."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from .. import smoothing
from ..chebyshev import run

if TYPE_CHECKING:
    from ....core.executor import Array, Executor
    from ....core.linop import LinOp
    from .levels import Level

CYCLES = ("V", "W", "F", "K")


class Walk:
    """One application of a hierarchy, without decisions of the host while it runs.

    Parameters
    ----------
    levels : list of Level
        All levels except the coarsest, the finest first.
    coarsest : LinOp
        The solver of the coarsest level.
    cycle : {"V", "W", "F", "K"}
        The visits of each coarser level: once; twice; twice, the second time by a V-cycle; by two
        iterations of flexible conjugate gradients.
    sweeps : (int, int)
        Applications of the smoothers before and after the next level.
    """

    def __init__(
        self, levels: list[Level], coarsest: LinOp, cycle: str, sweeps: tuple[int, int]
    ) -> None:
        self.levels, self.coarsest, self.cycle, self.sweeps = levels, coarsest, cycle, sweeps
        self.executor: Executor = coarsest.executor
        self.dtype = coarsest.dtype

    def solve(self, b: Array, x: Array) -> None:
        """Set ``x`` to the result of one cycle from 0 for ``b``."""
        self._visit(0, b, x, self.cycle, from_zero=True)

    def _visit(self, at: int, b: Array, x: Array, cycle: str, from_zero: bool) -> None:
        if at == len(self.levels):
            self.coarsest._apply(b, x, 1.0, 0.0)
            return
        level, (n, k) = self.levels[at], x.shape
        coarse_rows = level.R.local_rows
        before, after = self.sweeps
        for sweep in range(before):
            level.before.apply(b, x, from_zero=from_zero and sweep == 0)
        with ExitStack() as stack:
            q = self._block(stack, at, 0, n, k, level.R.room)
            coarse_b = self._block(stack, at, 1, coarse_rows, k)
            coarse_x = self._block(
                stack, at, 2, coarse_rows, k, max(self.room(at + 1), level.P.room)
            )
            if from_zero and before == 0:
                level.R._apply(b, coarse_b, 1.0, 0.0)
            else:
                level.A._apply(x, q, 1.0, 0.0)
                run(smoothing.residual, self.executor, {"b": b, "q": q})
                level.R._apply(q, coarse_b, 1.0, 0.0)
            self._descend(at + 1, coarse_b, coarse_x, cycle)
            started = 0.0 if from_zero and before == 0 else 1.0
            level.P._apply(coarse_x, x, 1.0, started)
        for _ in range(after):
            level.after.apply(b, x, from_zero=False)

    def _descend(self, at: int, b: Array, x: Array, cycle: str) -> None:
        """Visit the next level as often as the cycle requires."""
        if at == len(self.levels) or cycle == "V":
            self._visit(at, b, x, cycle, from_zero=True)
        elif cycle == "K":
            self._accelerate(at, b, x)
        else:
            self._visit(at, b, x, cycle, from_zero=True)
            self._visit(at, b, x, "V" if cycle == "F" else "W", from_zero=False)

    def _accelerate(self, at: int, b: Array, x: Array) -> None:
        """Set ``x`` by two iterations of flexible conjugate gradients; ``b`` is overwritten.

        Y. Notay, P. S. Vassilevski, Recursive Krylov-based multigrid cycles, Numer. Linear Algebra
        Appl. 15 (2008), algorithm 3.2, without the test that may leave out the second one.
        """
        level, (n, k), executor = self.levels[at], x.shape, self.executor
        with ExitStack() as stack:
            work: dict[str, Any] = {"b": b, "x": x}
            for place, name in enumerate(("c", "v", "d", "w")):
                work[name] = self._block(stack, at, 3 + place, n, k)
            scalars = stack.enter_context(level.temporaries[7].block(executor, 5, k, self.dtype))
            for place, name in enumerate(("cv", "cb", "dv", "dw", "db")):
                work[name] = scalars[place]
            self._visit(at, b, work["c"], "K", from_zero=True)
            level.A._apply(work["c"], work["v"], 1.0, 0.0)
            run(smoothing.measure, executor, work)
            run(smoothing.advance, executor, work)
            self._visit(at, b, work["d"], "K", from_zero=True)
            level.A._apply(work["d"], work["w"], 1.0, 0.0)
            run(smoothing.measure_again, executor, work)
            run(smoothing.combine, executor, work)

    def room(self, at: int) -> int:
        """Return the extra rows after the end of a vector that the matrix of a level uses."""
        return self.levels[at].A.room if at < len(self.levels) else 0

    def _block(
        self, stack: ExitStack, at: int, place: int, rows: int, columns: int, room: int = 0
    ) -> Array:
        block = (
            self.levels[at].temporaries[place].block(self.executor, rows, columns, self.dtype, room)
        )
        return stack.enter_context(block)
