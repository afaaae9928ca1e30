"""A contest before its matrix is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from .cases import Case, divided
from .generators import Csr
from .peers import Peer
from .problem import Problem

#: For a rehearsal a case has usually this share of its entries.
REHEARSED = 1 / 16


@dataclass(frozen=True)
class Task:
    """A contest before its matrix is there; can be sent to another process.

    Attributes
    ----------
    benchmark : str
        Its name in records: ``spmv``, ``solve/cg``, ``spmm/32``, ...
    case : Case
        Makes the matrix.
    make : callable
        Takes the matrix and returns the problem.
    dtype : str
        Of the matrix.
    peers : tuple of Peer or None
        The contenders instead of the requested ones.
    rehearsed : float
        In a rehearsal the case has this share of its entries.
    """

    benchmark: str
    case: Case
    make: Callable[[Csr], Problem]
    dtype: str = "float64"
    peers: tuple[Peer, ...] | None = None
    rehearsed: float = REHEARSED

    def smaller(self) -> Task:
        """Return the same with fewer entries, as far as the case has other sizes."""
        if self.rehearsed == 1.0:
            return self
        return replace(self, case=divided(self.case, self.rehearsed))


class Maker:
    """Makes problems and keeps the last matrix: tasks that follow one another share it."""

    def __init__(self) -> None:
        self._last: tuple[Case, str] | None = None
        self._matrix: Csr

    def problem(self, task: Task) -> Problem:
        """Return the problem of a task."""
        wanted = task.case, task.dtype
        if wanted != self._last:
            self._last = None  # it may fail
            self._matrix = task.case.matrix(task.dtype)
            self._last = wanted
        return task.make(self._matrix)

    def problems(self, tasks: Iterable[Task]) -> Iterator[Problem | Exception]:
        """Yield the problem of each task, or why there is none, when it is asked for."""
        for task in tasks:
            try:
                made: Problem | Exception = self.problem(task)
            # a matrix that does not fit, or cannot be read: the others are made all the same
            except Exception as error:
                made = error
            yield made
