"""Batch solvers for matrices with different patterns: one for each pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.batch import BatchResult
from ...core.batch.result import require_solved, summary
from ...core.wording import counted
from ..driver.unrecorded import Unrecorded

if TYPE_CHECKING:
    from ...core.batch import MixedBatch


class MixedSolver(Unrecorded):
    """A solver for all matrices of :func:`wollemi.batch`; operands and results are lists.

    Parameters
    ----------
    make : callable
        Creates the solver for one batch.
    A : MixedBatch
        The matrices.
    M, **options
        As for the solver of one batch.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.batch([wl.Csr(np.diag([2.0, 4.0])), wl.Csr(np.eye(3))])
    >>> result = wl.solvers.Cg(A).solve([np.ones(2), np.ones(3)])
    >>> result.x, result.converged
    ([array([0.5 , 0.25]), array([1., 1., 1.])], [True, True])
    """

    def __init__(
        self, make: Callable[..., Any], A: MixedBatch, M: Any = None, **options: Any
    ) -> None:
        self.A = A
        chosen = options if M is None else {"M": M, **options}
        self.solvers = [make(batch, **chosen) for _, batch in A.groups]

    def __repr__(self) -> str:
        return f"<solvers of {self.A!r}: {', '.join(map(repr, self.solvers))}>"

    def __matmul__(self, b: Sequence[Any]) -> list[Any]:
        """Return the solutions without their verdicts."""
        return self.solve(b).x

    def solve(self, b: Sequence[Any], x0: Sequence[Any] | None = None) -> MixedResult:
        """Solve every system.

        Parameters
        ----------
        b : list of arrays, shape (n,) or (n, k) each
            Right-hand sides; all of one pattern have the same shape.
        x0 : list of arrays, optional
            Initial guesses.

        Returns
        -------
        MixedResult
            Lists with one item for each matrix.
        """
        results: list[BatchResult] = []

        def solved(_: Any, places: list[int], right: Any, start: Any) -> list[Any]:
            results.append(self.solvers[len(results)].solve(right, start))
            return list(results[-1].x)

        x = self.A.by_groups(solved, b, x0)
        return MixedResult(self.A, x, results)


class MixedResult:
    """The results for matrices with different patterns, as lists.

    Attributes
    ----------
    x : list of arrays
        The solutions.
    results : list of BatchResult
        The results of the batches.
    """

    def __init__(self, A: MixedBatch, x: list[Any], results: list[BatchResult]) -> None:
        self._A, self.x, self.results = A, x, results

    def _spread(self, name: str) -> list[Any]:
        values: list[Any] = [None] * len(self._A)
        for (places, _), result in zip(self._A.groups, self.results, strict=True):
            for k, item in zip(places, getattr(result, name), strict=True):
                values[k] = item.item() if isinstance(item, np.generic) else item
        return values

    @property
    def converged(self) -> list[bool]:
        """Whether each system converged."""
        return self._spread("converged")

    @property
    def iterations(self) -> list[int]:
        """The number of iterations of each system."""
        return self._spread("iterations")

    @property
    def residual_norm(self) -> list[Any]:
        """The norm of the true residual of each system."""
        return self._spread("residual_norm")

    @property
    def reason(self) -> list[str]:
        """Why each system ended."""
        return self._spread("reason")

    def require_converged(self) -> Self:
        """Return this result if every system is solved.

        Raises
        ------
        SystemNotSolved
            If a system is not solved: the message has the number of such systems, and each reason
            with its first system.
        """
        require_solved(self.converged, self.reason)
        return self

    def __repr__(self) -> str:
        text = summary(self.converged, self.reason)
        most = counted(max(self.iterations, default=0), "iteration")
        seconds = sum(result.seconds for result in self.results)
        return f"<{type(self).__name__}: {text}; {most} at most, {seconds:.3g} s>"
