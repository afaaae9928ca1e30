"""The result of a solve of many systems, with a verdict for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..errors import SystemNotSolved
from ..status import Stop
from ..wording import counted
from .verdicts import Verdicts

Numbers = np.ndarray[Any, Any]

#: The stop codes that SciPy's ``info`` reports as a breakdown.
_BROKEN = (
    Stop.INDEFINITE, Stop.BREAKDOWN, Stop.NOT_FINITE, Stop.UNPREPARED, Stop.DIVERGED
)  # fmt: skip
_BREAKDOWN_INFO = -10

#: Maximum number of reasons in an error message.
MOST_REASONS = 4


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The outcome of a solve of many systems; it unpacks into ``x, info``.

    If the right-hand sides have shape ``(*batch_shape, n, k)``, the verdict of a system covers all
    its columns; ``stops``, ``residual_norm``, ``threshold`` and ``column_iterations`` have an
    additional axis of length k. Verdicts on a device stay there until they are read.

    Attributes
    ----------
    x : array, shape (*batch_shape, n) or (*batch_shape, n, k)
        The solutions, as NumPy or native arrays like ``b``.
    verdicts : Verdicts
        One verdict for each solve.
    seconds : float
        Wall time of the whole solve in seconds.
    solver, executor : str
        Names of the solver and its executor.
    batch_shape, columns : tuple of int
        The axes of the batch; ``(k,)`` for blocks of right-hand sides, otherwise empty.
    notes : list of str
        The choices that were made, and their reasons.
    explained : mapping of int to str
        For some systems, by number: a more specific reason than the sentence of its code.

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
    verdicts: Verdicts
    seconds: float
    solver: str
    executor: str
    batch_shape: tuple[int, ...]
    columns: tuple[int, ...] = ()
    notes: list[str] = field(default_factory=list)
    explained: Mapping[int, str] = field(default_factory=dict)

    def _shaped(self, array: Numbers) -> Numbers:
        """Return an array over all solves with the axes of the batch and the columns."""
        return np.asarray(array.reshape(*self.batch_shape, *self.columns))

    @property
    def stops(self) -> Numbers:
        """The stop codes of the solves, ``Stop(code)``, as an array of uint8."""
        return self._shaped(self.verdicts.codes)

    @property
    def column_iterations(self) -> Numbers:
        """Iterations of each solve, as an array of int64."""
        return self._shaped(self.verdicts.iterations)

    @property
    def residual_norm(self) -> Numbers:
        """Norms of the true residuals ``b - A x``; NaN for systems that were left out."""
        return self._shaped(self.verdicts.norms)

    @property
    def threshold(self) -> Numbers:
        """The threshold of each residual norm."""
        return self._shaped(self.verdicts.thresholds)

    def _by_system(self, array: Numbers) -> Numbers:
        """Return an array with one row for each system."""
        count = int(np.prod(self.batch_shape, dtype=np.int64))
        columns = int(np.prod(array.shape[len(self.batch_shape) :], dtype=np.int64))
        return array.reshape(count, columns)

    @cached_property
    def converged(self) -> Numbers:
        """Whether all true residuals of each system meet their thresholds, shape batch_shape."""
        met = self._by_system(self.stops == Stop.CONVERGED).all(axis=1)
        return np.asarray(met.reshape(self.batch_shape))

    @cached_property
    def iterations(self) -> Numbers:
        """The largest iteration count of each system's columns, shape batch_shape."""
        most = self._by_system(self.column_iterations).max(axis=1, initial=0)
        return np.asarray(most.reshape(self.batch_shape))

    @cached_property
    def reason(self) -> Numbers:
        """The reason why each system ended, as an object array of str, shape batch_shape."""
        codes = self._by_system(self.stops)
        first = np.full(codes.shape[0], Stop.CONVERGED, np.uint8)
        if codes.shape[1]:
            column = (codes != Stop.CONVERGED).argmax(axis=1)
            first[:] = np.take_along_axis(codes, column[:, None], axis=1)[:, 0]
        made = np.empty(codes.shape[0], object)
        for code in np.unique(first).tolist():
            made[first == code] = Stop(code).sentence
        for k, reason in self.explained.items():
            if first[k] != Stop.CONVERGED:
                made[k] = reason
        return made.reshape(self.batch_shape)

    @cached_property
    def info(self) -> Numbers:
        """SciPy's code of each system: 0 if converged, iterations if not, negative: broken."""
        broken = self._by_system(np.isin(self.stops, _BROKEN)).any(axis=1)
        info = np.where(broken, _BREAKDOWN_INFO, np.maximum(self.iterations.ravel(), 1))
        return np.asarray(np.where(self.converged.ravel(), 0, info).reshape(self.batch_shape))

    def require_converged(self) -> BatchResult:
        """Return this result if every system is solved; raise an error otherwise.

        Raises
        ------
        SystemNotSolved
            If a system is not solved. The message has the number of failures, and each reason with
            its first system.
        """
        require_solved(*self._listed(), self._place)
        return self

    def _listed(self) -> tuple[list[bool], list[str]]:
        """Return the flags of solved systems, and their reasons, as flat lists."""
        return self.converged.ravel().tolist(), self.reason.ravel().tolist()

    def _place(self, k: int) -> str:
        """Return the batch indices of system ``k`` as text."""
        return ", ".join(map(str, np.unravel_index(k, self.batch_shape)))

    def __iter__(self) -> Iterator[Any]:
        yield self.x
        yield self.info

    def __repr__(self) -> str:
        most = int(self.iterations.max(initial=0))
        said = summary(*self._listed(), self._place)
        return (
            f"<BatchResult of {self.solver} on {self.executor}: {said}; "
            f"{counted(most, 'iteration')} at most, {self.seconds:.3g} s>"
        )


def summary(
    converged: Sequence[bool], reasons: Sequence[str], place: Callable[[int], str] = str
) -> str:
    """Return the number of converged systems, and the most frequent reason of failures.

    Parameters
    ----------
    converged, reasons : sequence
        The flag and the reason of each system.
    place : callable
        Returns the batch indices of a system as text.

    Examples
    --------
    >>> from wollemi.core.batch.result import summary
    >>> summary([True, False], ["converged", "breakdown"])
    '1 of 2 systems converged; system 1: breakdown'
    """
    said = f"{sum(map(bool, converged))} of {len(converged)} systems converged"
    found = _failures(converged, reasons)
    return f"{said}; system {place(found[0].first)}: {found[0].reason}" if found else said


def require_solved(
    converged: Sequence[bool], reasons: Sequence[str], place: Callable[[int], str] = str
) -> None:
    """Raise an error with the reasons unless all systems are solved.

    The parameters are those of :func:`summary`.

    Raises
    ------
    SystemNotSolved
        If a system is not solved. The message has the number of failures, and each reason with its
        first system.
    """
    found = _failures(converged, reasons)
    if not found:
        return
    said = [
        f"{counted(f.systems, 'system')}, first {place(f.first)}: {f.reason}"
        if len(found) > 1
        else f"system {place(f.first)}: {f.reason}"
        for f in found[:MOST_REASONS]
    ]
    if len(found) > MOST_REASONS:
        said.append(counted(len(found) - MOST_REASONS, "further reason"))
    failed = sum(f.systems for f in found)
    raise SystemNotSolved(
        f"{failed} of {len(converged)} systems were not solved; {'; '.join(said)}"
    )


class _Failure(NamedTuple):
    """A reason of failures, the number of its systems, and the first of them."""

    reason: str
    systems: int
    first: int


def _failures(converged: Sequence[bool], reasons: Sequence[str]) -> list[_Failure]:
    """Return the reasons of failures, beginning with the most frequent one."""
    found: dict[str, list[int]] = {}
    for k, met in enumerate(converged):
        if not met:
            found.setdefault(reasons[k], []).append(k)
    made = [_Failure(reason, len(systems), systems[0]) for reason, systems in found.items()]
    return sorted(made, key=lambda failure: -failure.systems)
