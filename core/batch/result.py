"""The result of a solve of many systems: a verdict for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import SystemNotSolved
from ..status import Stop

Numbers = np.ndarray[Any, Any]

#: The codes that SciPy's ``info`` tells as a breakdown.
_BROKEN = (Stop.INDEFINITE, Stop.BREAKDOWN, Stop.NOT_FINITE, Stop.UNPREPARED)
_BREAKDOWN_INFO = -10


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The outcome of a solve of many systems; unpacks into ``x, info``.

    With right-hand sides of shape ``(*batch_shape, n, k)`` the verdict of a system is that of all
    its columns; ``stops``, ``residual_norm``, ``threshold`` and ``column_iterations`` have one
    more axis of length k.

    Attributes
    ----------
    x : array, shape (*batch_shape, n) or (*batch_shape, n, k)
        The solutions, of the kind of ``b`` (NumPy or native).
    stops : array of uint8, shape (*batch_shape[, k])
        The code of the reason why each solve stopped: ``Stop(code)``.
    column_iterations : array of int64, shape (*batch_shape[, k])
        Iterations of each solve.
    residual_norm : array, shape (*batch_shape[, k])
        Norms of the true residuals ``b - A x``. NaN where a system was left out.
    threshold : array, shape (*batch_shape[, k])
        The norm that each system had to reach.
    seconds : float
        Wall time of all.
    solver, executor : str
        The solver of the systems and its executor.
    notes : list of str
        The choices on the way, and their reasons.
    explained : mapping of int to str
        By the number of a system, a reason that is more than the sentence of its code.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr((np.array([[2.0, 4.0], [0.0, 1.0]]), [0, 1], [0, 1, 2]), shape=(2, 2))
    >>> result = wl.solvers.Cg(A).solve(np.ones((2, 2)))
    >>> result.converged, result.iterations
    (array([ True, False]), array([2, 1]))
    >>> result.reason[0]
    'converged: the true residual meets the tolerance'
    """

    x: Any
    stops: Numbers
    column_iterations: Numbers
    residual_norm: Numbers
    threshold: Numbers
    seconds: float
    solver: str
    executor: str
    batch_shape: tuple[int, ...]
    notes: list[str] = field(default_factory=list)
    explained: Mapping[int, str] = field(default_factory=dict)

    def _by_system(self, array: Numbers) -> Numbers:
        """Return an array with one row for each system."""
        count = int(np.prod(self.batch_shape, dtype=np.int64))
        columns = int(np.prod(array.shape[len(self.batch_shape) :], dtype=np.int64))
        return array.reshape(count, columns)

    @cached_property
    def converged(self) -> Numbers:
        """Whether the true residuals of each system meet their thresholds, shape batch_shape."""
        met = self._by_system(self.stops == Stop.CONVERGED).all(axis=1)
        return np.asarray(met.reshape(self.batch_shape))

    @cached_property
    def iterations(self) -> Numbers:
        """Iterations of each system, of its column that took most, shape batch_shape."""
        most = self._by_system(self.column_iterations).max(axis=1, initial=0)
        return np.asarray(most.reshape(self.batch_shape))

    @cached_property
    def reason(self) -> Numbers:
        """Why each system ended, in a sentence, shape batch_shape (objects of str)."""
        made = np.empty(self.converged.size, object)
        for k, codes in enumerate(self._by_system(self.stops)):
            failed = codes[codes != Stop.CONVERGED]
            stop = Stop(int(failed[0])) if failed.size else Stop.CONVERGED
            made[k] = self.explained.get(k, stop.sentence) if failed.size else stop.sentence
        return made.reshape(self.batch_shape)

    @cached_property
    def info(self) -> Numbers:
        """SciPy's code of each system: 0 converged, positive iterations, negative a breakdown."""
        broken = self._by_system(np.isin(self.stops, _BROKEN)).any(axis=1)
        info = np.where(broken, _BREAKDOWN_INFO, np.maximum(self.iterations.ravel(), 1))
        return np.asarray(np.where(self.converged.ravel(), 0, info).reshape(self.batch_shape))

    def require_converged(self) -> BatchResult:
        """Return this result if every system is solved.

        Raises
        ------
        SystemNotSolved
            If one is not: the message counts them and has the first reason.
        """
        failed = np.flatnonzero(~self.converged.ravel())
        if failed.size:
            first = np.unravel_index(int(failed[0]), self.batch_shape)
            place = ", ".join(map(str, first))
            raise SystemNotSolved(
                f"{failed.size} of {self.converged.size} systems were not solved; system {place}: "
                f"{self.reason.ravel()[failed[0]]}"
            )
        return self

    def __iter__(self) -> Iterator[Any]:
        yield self.x
        yield self.info

    def __repr__(self) -> str:
        solved = int(np.count_nonzero(self.converged))
        most = int(self.iterations.max(initial=0))
        return (
            f"<BatchResult of {self.solver} on {self.executor}: {solved} of "
            f"{self.converged.size} systems converged; {most} iterations at most, "
            f"{self.seconds:.3g} s>"
        )
