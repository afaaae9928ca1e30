"""Loggers of a solve: a text stream, residual norms, or counts of copies and products."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from .errors import InvalidArgument
from .wording import counted

if TYPE_CHECKING:
    from .events import Allocation, Application, Copy
    from .result import Result


@dataclass(frozen=True)
class Snapshot:
    """The state of a solve at one iteration.

    Attributes
    ----------
    solver, executor : str
        Names of the solver and its executor.
    iteration : int
        Number of completed iterations.
    limit : int
        Maximum number of iterations.
    norm, threshold : array, shape (k,)
        Residual norms as the iteration computes them, and their thresholds.
    running : int
        Number of columns that still run.
    true_norm : array, shape (k,), or None
        Norms of ``b - A x`` if they were computed: at the start, after the check of a cycle, and at
        each call of a logger with ``true_residual``.
    """

    solver: str
    executor: str
    iteration: int
    limit: int
    norm: np.ndarray[Any, Any]
    threshold: np.ndarray[Any, Any]
    running: int
    true_norm: np.ndarray[Any, Any] | None = None


class Logger:
    """A watcher of a solve; subclasses override only the methods that they need.

    Attributes
    ----------
    every : int
        Iterations between two calls of :meth:`iteration`. The executor runs the iterations in
        between without the host.
    true_residual : bool
        Whether the true residual is computed for each call of :meth:`iteration`, which costs a
        product with ``A``. Solvers without an iterate inside their cycles (GMRES) compute it only
        at the ends of cycles.

    Notes
    -----
    Unused events cost nothing. With a logger that overrides :meth:`applied` the host drives the
    iterations one operation at a time, as with a profiler, because the operations of a recording
    cannot be counted. A logger that overrides :meth:`copied` or :meth:`allocated` receives the
    executor's copies and allocations during the solve; :func:`watch` reports them outside of
    solves.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> class Residuals(wl.loggers.Logger):
    ...     every, true_residual = 2, True
    ...
    ...     def iteration(self, snapshot):
    ...         print(snapshot.iteration, np.allclose(snapshot.norm, snapshot.true_norm))
    >>> A = wl.Csr(np.diag([1.0, 2.0, 3.0, 4.0]))
    >>> x, info = wl.solvers.Cg(A).solve(np.ones(4), loggers=[Residuals()])
    2 True
    4 True
    """

    every: int = 100
    true_residual: bool = False

    def __repr__(self) -> str:
        true = ", true_residual=True" if self.true_residual else ""
        return f"<{type(self).__name__} every={self.every}{true}>"

    def start(self, snapshot: Snapshot) -> None:
        """Receive the initial residual."""

    def iteration(self, snapshot: Snapshot) -> None:
        """Receive the state of the solve."""

    def verified(self, snapshot: Snapshot) -> None:
        """Receive the true residual at the end of a cycle, and the residual of the iteration."""

    def applied(self, application: Application) -> None:
        """Receive a product with ``A`` or ``M``."""

    def copied(self, copy: Copy) -> None:
        """Receive a copy of an array."""

    def allocated(self, allocation: Allocation) -> None:
        """Receive an allocation of an array."""

    def finish(self, result: Result) -> None:
        """Receive the result."""


def checked_loggers(loggers: Any) -> list[Logger]:
    """Return loggers as a list, or raise an error.

    Raises
    ------
    InvalidArgument
        If ``loggers`` is not a sequence, or if an element lacks ``every``.
    """
    if type(loggers) is tuple and not loggers:  # the most frequent case
        return []
    if not isinstance(loggers, Iterable):
        raise InvalidArgument(f"loggers: expected a sequence of them, got {loggers!r}")
    result = list(loggers)
    for logger in result:
        every = getattr(logger, "every", None)
        if not isinstance(every, (int, np.integer)) or every < 1:
            raise InvalidArgument(
                f"loggers: expected objects such as wl.loggers.Stream(every=100), with "
                f"every an integer of at least 1, got {logger!r} with every={every!r}"
            )
    return result


class History(Logger):
    """Stores a snapshot every ``every`` iterations.

    ``Result.residuals`` has the norm of every iteration without a logger; a history can span
    several solves.
    """

    def __init__(self, every: int = 1, true_residual: bool = False) -> None:
        self.every, self.true_residual = every, true_residual
        self.snapshots: list[Snapshot] = []

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}: {counted(len(self.snapshots), 'snapshot')}>"

    def start(self, snapshot: Snapshot) -> None:
        """Store the initial residual."""
        self.snapshots.append(snapshot)

    def iteration(self, snapshot: Snapshot) -> None:
        """Store the state of the solve."""
        self.snapshots.append(snapshot)


class Counts(Logger):
    """Counts products, copies and allocations.

    The host drives the solve one operation at a time to count them.

    Attributes
    ----------
    applications : Counter
        Products by operator: ``"A"`` and ``"M"``, for least squares also ``"AH"``, and for methods
        with transposed products also ``"A_T"`` and ``"M_T"``.
    copies, copied_bytes : Counter
        Number and bytes of copies by direction, a pair of names such as ``("host", "cuda:0")``.
        Copies within one executor's memory have the name twice, ``("omp:2", "omp:2")``.
    allocations, allocated_bytes : int
        Number of allocated arrays, and their bytes.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> counts = wl.loggers.Counts()
    >>> A = wl.Csr(np.diag([1.0, 2.0, 3.0]))
    >>> result = wl.solvers.Cg(A, rtol=1e-10).solve(np.ones(3), loggers=[counts])
    >>> result.iterations, counts.applications["A"]  # and one at each end for the true residual
    (3, 5)
    """

    def __init__(self) -> None:
        self.applications: Counter[str] = Counter()
        self.copies: Counter[tuple[str, str]] = Counter()
        self.copied_bytes: Counter[tuple[str, str]] = Counter()
        self.allocations = self.allocated_bytes = 0

    def __repr__(self) -> str:
        by_operator = ", ".join(f"{name} {count}" for name, count in self.applications.items())
        products = counted(self.applications.total(), "product")
        copies = counted(self.copies.total(), "copy", "copies")
        return (
            f"<Counts: {products}{f' ({by_operator})' if by_operator else ''}, {copies} of "
            f"{self.copied_bytes.total():,} bytes ({self.moved_bytes:,} between executors), "
            f"{counted(self.allocations, 'allocation')} of {self.allocated_bytes:,} bytes>"
        )

    @property
    def moved_bytes(self) -> int:
        """The bytes copied between different executors, or between the host and an executor."""
        return sum(
            nbytes for (source, target), nbytes in self.copied_bytes.items() if source != target
        )

    def applied(self, application: Application) -> None:
        """Count a product."""
        self.applications[application.operator] += 1

    def copied(self, copy: Copy) -> None:
        """Count a copy."""
        self.copies[copy.source, copy.target] += 1
        self.copied_bytes[copy.source, copy.target] += copy.nbytes

    def allocated(self, allocation: Allocation) -> None:
        """Count an allocation."""
        self.allocations += 1
        self.allocated_bytes += allocation.nbytes


class Stream(Logger):
    """Writes the progress of a solve, one line every ``every`` iterations.

    Parameters
    ----------
    stream : file, optional
        The output; standard error by default.
    every : int
        Iterations between two lines.
    true_residual : bool
        Whether lines contain the true residual in addition to the recurrence's.
    """

    def __init__(
        self, stream: TextIO | None = None, every: int = 100, true_residual: bool = False
    ) -> None:
        self.every, self.true_residual = every, true_residual
        self._stream = stream

    def _say(self, line: str) -> None:
        print(line, file=self._stream or sys.stderr)

    def start(self, snapshot: Snapshot) -> None:
        """Write the initial residual."""
        self._say(
            f"{snapshot.solver} on {snapshot.executor}: {snapshot.norm.size} right-hand side(s), "
            f"residual norm {snapshot.norm.max(initial=0.0):.3e}"
        )

    def iteration(self, snapshot: Snapshot) -> None:
        """Write the state of the solve."""
        self._say(
            f"  iteration {snapshot.iteration}: residual norm "
            f"{snapshot.norm.max(initial=0.0):.3e}{self._true(snapshot)}, "
            f"{snapshot.running} running"
        )

    def verified(self, snapshot: Snapshot) -> None:
        """Write the true residual."""
        if self.true_residual:
            self._say(f"  iteration {snapshot.iteration}: cycle ended{self._true(snapshot)}")

    @staticmethod
    def _true(snapshot: Snapshot) -> str:
        if snapshot.true_norm is None:
            return ""
        return f", true residual norm {snapshot.true_norm.max(initial=0.0):.3e}"

    def finish(self, result: Result) -> None:
        """Write the outcome."""
        self._say(f"{result!r}")
