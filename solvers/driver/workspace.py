"""The arrays that a solver works in, allocated once and reused by every solve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import real_dtype
from ...core.formats import Matrix
from ...core.iteration import Cycles, Iteration, Replay
from ...core.links import resets_of
from ...core.linop import LinOp
from ...core.operations import status as status_steps
from ...core.operations import vector as vector_operations
from ...core.precision import in_precision
from ...core.room import zeros_with_room
from ...core.status import Status
from ...core.step import Steps
from .residual import ResidualOfWorkspace
from .scaling import UNSCALED, Scales, times

if TYPE_CHECKING:
    from ...core.executor import Array


class Workspace:
    """The arrays of one solve, as attributes, for a dtype and a number of columns.

    Attributes
    ----------
    A, M : LinOp or None
        The operator and the preconditioner in the dtype of the solve.
    A_T, M_T : LinOp or None
        Their transposes, if the solver has requested them.
    n, k : int
        Number of rows of each vector on this executor, and number of columns.
    room : int
        Extra rows after the end of a vector, for products with ``A``.
    x, r : arrays, shape (n, k)
        The iterate and its residual.
    status : Status
        The stopping status of the columns.
    iteration : Iteration
        The loop that the executor drives.
    beginning, ending, verifying : Replay
        The recordings before and after a cycle, and of the verification.
    entering, leaving : Replay
        The recordings before and after the first cycle of an unwatched solve, without waits.
    spare : array, shape (n, k)
        The array in which ``leaving`` computes the true residual.
    outdated : list
        The arrays of matrices with a pattern that was replaced in place. Programs of this workspace
        may still read them, and are rebuilt for the next solve.
    rebuilds : int
        The number of times that the solver's operators had been rebuilt when this workspace was
        created. After another rebuild, its programs are out of date.
    resets : int
        The number of times that the members of a group had lost step with each other when this
        workspace was created. One of them may have failed before it had built its programs, so that
        all build them again.
    scales : Scales
        The factors of ``A`` and ``M``.
    residual : ResidualOfWorkspace
        Computes true residuals.
    measured : int or None
        The version of ``A``'s values that were measured after a failed solve.
    applied : bool
        Whether ``A`` was applied, and thus has prepared its one-time data.
    applies_M : bool
        Whether a solver of a user's class is known to apply ``M``.
    of_batch : bool
        Whether it is the workspace of one system of a batch. Kernels of batches identify the values
        that differ between systems by the operations on them, so that each operation is separate
        on executors that use plans of the matrix for systems.
    kept, best : arrays, shape (n, k) and (k,)
        The best verified iterates, and their residual norms; allocated when a solve starts a second
        cycle.
    cycles : Cycles
        For a restarted solver: the loop over cycles that runs without watchers. It keeps the
        right-hand sides in ``b``, and the norms at the start of the last cycle in ``begun``.
    """

    A: LinOp
    M: LinOp | None
    A_T: LinOp
    M_T: LinOp | None
    status: Status
    iteration: Iteration
    beginning: Replay
    ending: Replay
    verifying: Replay
    entering: Replay
    leaving: Replay
    cycles: Cycles
    rebuilds: int
    resets: int
    #: Whether ``M`` or its transpose is a copy of the solver's operator, and the number of updates
    #: at the time of the copy.
    holds_copies: bool
    updates: int
    #: The version of the values of the solver's operator if ``A`` or ``A_T`` is a copy of it.
    version: int | None
    applied: bool
    applies_M: bool
    of_batch: bool
    scales: Scales
    residual: ResidualOfWorkspace

    def __init__(self, A: LinOp, M: LinOp | None, columns: int, scales: Scales = UNSCALED) -> None:
        self.A, self.scales = times(scales.A, A), scales
        self.M = None if M is None else times(scales.M, M)
        self.executor = A.executor
        self.n, self.k, self.room = A.local_rows, columns, A.room
        self.dtype = A.dtype
        self.measured: int | None = None
        self.resets = resets_of(A.executor)
        self.residual = ResidualOfWorkspace(self.A, A.local_rows, A.local_columns, columns)
        self.status = Status(self.executor, columns, A.dtype)
        self.outdated: list[Any] = []
        self.holds_copies, self.updates, self.version = False, 0, None
        self.applied = self.applies_M = self.of_batch = False
        Matrix.recorders.add(self)
        self.vectors("x", "r")
        if M is not None and M.resident:
            # Operators prepare one-time data before an iteration is recorded. A is applied by the
            # first verification.
            M._apply(self.r, self.x, 1.0, 0.0)

    def __repr__(self) -> str:
        preconditioner = "" if self.M is None else f" and {self.M!r}"
        return f"<workspace of {self.k} columns for {self.A!r}{preconditioner}>"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Array: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def transpose(self, M: LinOp | None) -> None:
        """Create ``A_T`` and ``M_T``, the transposes in the dtype of the solve.

        They share the values of the original operators. ``M`` is the solver's, in its own
        precision.
        """
        self.holds_copies = True
        transpose = self.A.T
        if self.A._is_matrix and not _follows(transpose, self.A):
            self.version = version_of(self.A)
        self.A_T = transpose._private()
        M_T = None if M is None else in_precision(M.T, self.dtype)._private()
        self.M_T = None if M_T is None else times(self.scales.M, M_T)
        for operator in (self.A_T, self.M_T):
            if operator is not None and operator.resident:
                operator._apply(self.r, self.x, 1.0, 0.0)  # prepares its one-time data

    def row_factors(self) -> Array | None:
        """Return the factors of a diagonal ``M``, if a step may apply them itself."""
        apart = self.of_batch and self.executor.systems_by_plans
        factors = None if self.M is None or apart else self.M._row_factors
        return factors if factors is not None and factors.dtype == self.dtype else None

    def follows(self, M: LinOp | None) -> bool:
        """Return whether the operators of this workspace have the current values of ``M``."""
        return not self.holds_copies or self.updates == getattr(M, "_updates", 0)

    def release(self) -> None:
        """Free the arrays and the recorded programs at once; the workspace is unusable afterwards.

        They form reference cycles, and device memory must not wait for the garbage collector.
        """
        for value in self.__dict__.values():
            if isinstance(value, (Iteration, Replay, Cycles)):
                value.program = None
        self.__dict__.clear()
        Matrix.recorders.discard(self)

    def prepare(self) -> None:
        """Let operators prepare their one-time data, by the residual of what ``x`` and ``r`` hold.

        Both are written before they are read.
        """
        self.residual.make(self.x, self.r)
        self.applied = True

    def verify(self) -> None:
        """Compute the true residual of the right-hand side in ``r``, and judge it."""
        self.residual.make(self.x, self.r)
        status_steps.start(self)

    def make(self, steps: Steps, without: Sequence[str] = ()) -> None:
        """Allocate the missing arrays that steps name, except ``without``."""
        makers = {
            "vectors": self.vectors,
            "scalars": self.scalars,
            "reals": self.reals,
            "flags": self.flags,
        }
        for name, kind in steps.kinds.items():
            if kind in makers and name not in self.__dict__ and name not in without:
                makers[kind](name)

    def flags(self, *names: str) -> None:
        """Allocate one boolean per column."""
        self._make(names, (self.k,), np.uint8)

    def verify_all(self) -> None:
        """Compute and judge the true residual, and find the largest elements of the iterate."""
        self.verify()
        self.executor.run(vector_operations.largest, self.x, self.status.largest)

    def enter(self, initialize: Callable[[Workspace], None]) -> None:
        """Start a solve from zero with the right-hand sides in ``r``, on the device.

        Residual, threshold and first verdict are computed from the values of the status; then the
        method is initialized.
        """
        s = self.status
        self.executor.run(
            vector_operations.enter, self.r, self.x, s.relative, s.absolute, s.least, s.most,
            s.first, s.threshold, s,
        )  # fmt: skip
        initialize(self)

    def leave(self, finish: Callable[[Workspace], None]) -> None:
        """Let the method finish, and compute the true residual and its norm.

        The right-hand side is in ``spare``. The status keeps the values of the last iteration.
        """
        finish(self)
        self.residual.make(self.x, self.spare)
        self.executor.run(vector_operations.norm, self.spare, self.status.true)
        self.executor.run(vector_operations.largest, self.x, self.status.largest)

    def make_best(self) -> None:
        """Allocate the best verified iterates, if they do not exist yet."""
        if "best_x" not in vars(self):
            self.vectors("best_x")
            self.reals("best")

    def keep(self) -> None:
        """Keep the iterates with a new smallest residual."""
        self.executor.run(vector_operations.keep, self.x, self.best_x, self.best, self.status)

    def vectors(self, *names: str) -> None:
        """Allocate blocks of shape (n, k), with the extra rows that products of ``A`` use."""
        for name in names:
            block = zeros_with_room(self.executor, self.n, self.room, self.k, self.dtype)
            setattr(self, name, block)

    def scalars(self, *names: str) -> None:
        """Allocate one value per column."""
        self._make(names, (self.k,), self.dtype)

    def reals(self, *names: str) -> None:
        """Allocate one real value per column."""
        self._make(names, (self.k,), real_dtype(self.dtype))

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        """Allocate an array of any shape."""
        self._make((name,), shape, dtype)

    def _make(self, names: tuple[str, ...], shape: tuple[int, ...], dtype: Any) -> None:
        # zeros, not uninitialized memory: a column that never runs must not hold NaN
        for name in names:
            setattr(self, name, self.executor.zeros(shape, dtype))


def version_of(A: LinOp) -> int:
    """Return a number that differs after every change of the values of an operator's matrices."""
    parts = [part for part in getattr(A, "parts", ()) if isinstance(part, LinOp)]
    return int(getattr(A, "_values_version", 0)) + sum(map(version_of, parts))


def _follows(transpose: LinOp, A: LinOp) -> bool:
    """Return whether the transpose of a matrix follows new values of the matrix."""
    shared = getattr(A, "_sharers", None)
    if shared is not None and shared is getattr(transpose, "_sharers", None):
        return True
    return A is getattr(transpose, "_transpose_of", None)
