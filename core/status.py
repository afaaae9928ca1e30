"""The stopping status of a solve: one entry per right-hand side, in the executor's memory."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .dtypes import real_dtype

if TYPE_CHECKING:
    from .executor import Array, Executor
    from .transfer import Transfer


class Stop(IntEnum):
    """The reason why a column stopped; ``backends/unified/status.hpp`` has the same codes."""

    RUNNING = 0
    CONVERGED = 1
    INDEFINITE = 2
    BREAKDOWN = 3
    STAGNATED = 4
    NOT_FINITE = 5
    MAX_ITERATIONS = 6
    TIME_LIMIT = 7
    INTERRUPTED = 8
    CALLBACK = 9
    ITERATIONS = 10
    NO_PROGRESS = 11
    CRITERION = 12
    OUT_OF_RANGE = 13
    ILL_CONDITIONED = 14
    LEAST_SQUARES = 15
    UNPREPARED = 16
    SKIPPED = 17
    DIVERGED = 18

    @property
    def sentence(self) -> str:
        """The message for the user, including the remedy."""
        return _SENTENCES[self]


_SENTENCES = {
    Stop.RUNNING: "still running",
    Stop.CONVERGED: "converged: the true residual meets the tolerance",
    Stop.INDEFINITE: (
        "indefinite: the matrix or M is not positive definite; use gmres or bicgstab"
    ),
    Stop.BREAKDOWN: (
        "breakdown: the recurrence divided by zero; use gmres, another M or another x0"
    ),
    Stop.STAGNATED: (
        "stagnated: the true residual no longer falls; the tolerance is below the limit that the "
        "precision and the conditioning allow, or the matrix is singular: loosen rtol or use a "
        "stronger M"
    ),
    Stop.NOT_FINITE: (
        "not finite: the iteration overflowed or met NaN; if A and M have none, scale the rows of "
        "A, use a stronger M or gmres"
    ),
    Stop.MAX_ITERATIONS: (
        "not converged: the iteration limit was reached; raise maxiter, or use a stronger M"
    ),
    Stop.TIME_LIMIT: "not converged: the time limit was reached",
    Stop.INTERRUPTED: "interrupted",
    Stop.CALLBACK: "not converged: the callback asked to stop",
    Stop.ITERATIONS: (
        "done: the number of iterations that was asked for; no tolerance was given to meet"
    ),
    Stop.NO_PROGRESS: (
        "ended early: the true residual no longer falls, with iterations left; no tolerance was "
        "given to meet"
    ),
    Stop.CRITERION: "not converged: a criterion of your own ended the solve",
    Stop.OUT_OF_RANGE: (
        "out of range: the solution overflows the dtype, or loses its digits near zero; scale A "
        "or b, or use a wider dtype"
    ),
    Stop.ILL_CONDITIONED: (
        "ill-conditioned: the estimate of the condition number reached conlim; scale the columns "
        'of A with M="columns", add damp, or raise conlim'
    ),
    Stop.LEAST_SQUARES: (
        "least squares: A is singular and b is not in its range; x is a least squares solution; "
        "use lsmr for the shortest one"
    ),
    Stop.UNPREPARED: (
        "not solved: the preconditioner, or the factors, could not be made of this matrix"
    ),
    Stop.SKIPPED: "skipped: mask leaves the system out",
    Stop.DIVERGED: (
        "diverged: the residual grew by more than the precision can take back; use a stronger M, a "
        "smaller relaxation or wider bounds, or a Krylov method such as gmres"
    ),
}


#: The values that a solve reads from the device, in this order.
READ = ("stop", "running", "iterations", "threshold", "first", "true", "largest", "history")

#: The values that may be set together with the codes, in the order of storage.
_SET = ("threshold", "iterations", "norm")


class Status:
    """The stopping state of each column of a solve, in the executor's memory.

    The kernels of a solver's iteration write it. On the host, only :meth:`Executor.drive` and the
    solver between two drives read it.

    Attributes
    ----------
    stop : array of uint8, shape (k,)
        The :class:`Stop` code of each column. Kernels do not change columns that are not running.
    iterations : array of int64, shape (k,)
        Completed iterations, counted when the residual norm is observed.
    norm : real array, shape (k,)
        The last observed residual norm.
    threshold : real array, shape (k,)
        A column has converged if its norm is at most this threshold.
    history : real array, shape (capacity, k)
        Ring buffer of norms: iteration ``i`` (from 1) is in row ``(i - 1) % capacity``.
    running : array of int32, shape (1,)
        Number of running columns.
    relative, absolute, least, most : real arrays, shape (k,)
        Inputs from which the device computes thresholds and norms of right-hand sides; see
        ``vector.enter``.
    first, true, largest : real arrays, shape (k,)
        Norms of the right-hand sides, norms of true residuals, and largest absolute values of
        iterates.
    """

    #: Rows of the ring buffer. A drive has at most this number of iterations, so that norms are
    #: read before they are overwritten.
    CAPACITY = 1024

    #: The arrays in the order of kernel arguments.
    FIELDS = ("stop", "iterations", "norm", "threshold", "history", "running")

    stop: Array
    iterations: Array
    norm: Array
    threshold: Array
    history: Array
    running: Array
    relative: Array
    absolute: Array
    least: Array
    most: Array
    first: Array
    true: Array
    largest: Array

    def __init__(
        self, executor: Executor, columns: int, dtype: DTypeLike, capacity: int = CAPACITY
    ) -> None:
        real = real_dtype(dtype)
        self.executor = executor
        self.shape = (columns,)
        #: The transfers of :meth:`arm`, by the names of the arrays that each sets.
        self._arming: dict[tuple[str, ...], Transfer] = {}
        one = (columns,)
        # Arrays that are set together are adjacent, so that one copy suffices.
        (
            self.stop,
            self.running,
            self.threshold,
            self.iterations,
            self.norm,
            self.relative,
            self.absolute,
            self.least,
            self.most,
            self.first,
            self.true,
            self.largest,
            self.history,
        ) = executor.transfer_type.allocate(
            executor, (one, np.uint8), ((1,), np.int32), (one, real), (one, np.int64),
            *[(one, real)] * 8, ((capacity, columns), real),
        )  # fmt: skip
        zeros = {name: np.zeros(one, real) for name in ("threshold", "norm")}
        executor.copy_into(self.history, np.zeros((capacity, columns), real))
        self.arm(np.zeros(one, np.uint8), iterations=np.zeros(one, np.int64), **zeros)

    @cached_property
    def transfer(self) -> Transfer:
        """The transfer that writes values to the device before a solve and reads them after it.

        It writes ``stop``, ``running``, ``threshold``, ``iterations``, ``norm`` and the inputs of
        thresholds. It reads :data:`READ`.
        """
        told = (
            self.stop, self.running, self.threshold, self.iterations, self.norm,
            self.relative, self.absolute, self.least, self.most,
        )  # fmt: skip
        result = self.executor.transfer(*(getattr(self, name) for name in READ), written=told)
        result.host[1][:] = self.shape[0]  # all columns run
        return result

    @property
    def capacity(self) -> int:
        """The number of iterations that the history holds."""
        return int(self.history.shape[0])

    def arm(self, stop: np.ndarray[Any, Any], **members: np.ndarray[Any, Any]) -> None:
        """Set the codes of all columns from a host array; columns with code 0 run.

        ``members`` are other arrays that are set at the same time, such as ``threshold``, given as
        contiguous arrays of their dtypes.
        """
        stop = np.ascontiguousarray(stop, np.uint8)
        running = np.array([stop.size - np.count_nonzero(stop)], np.int32)  # RUNNING is 0
        names = tuple([name for name in _SET if name in members])
        transfer = self._arming.get(names)
        if transfer is None:
            targets = (self.stop, self.running, *(getattr(self, name) for name in names))
            transfer = self._arming[names] = self.executor.transfer(written=targets)
        transfer.write(stop, running, *[members[name] for name in names])

    def read(self, member: str) -> np.ndarray[Any, Any]:
        """Return a host copy of an array of the status."""
        return self.read_together(member)[0]

    def read_together(
        self, *members: str, also: Sequence[Array] = ()
    ) -> list[np.ndarray[Any, Any]]:
        """Return host copies of several status arrays, and of other arrays, after one wait."""
        arrays = [*(getattr(self, member) for member in members), *also]
        found = self.executor.transfer(*arrays).read()
        return [np.array(array) for array in found]
