"""The common base of LSQR and LSMR: operands of any shape, adjoints, damping, column scaling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...core.capture import SOLVES
from ...core.distributed.matrix import Csr as SharedCsr
from ...core.dtypes import common_dtype
from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.executor import brought_together, same_executor
from ...core.factors import whole_number
from ...core.formats import Diagonal, Matrix
from ...core.formats.norms import norm
from ...core.iteration import Iteration, Replay
from ...core.links import resets_of
from ...core.linop import LinOp
from ...core.loggers import Logger, checked_loggers
from ...core.operations import vector
from ...core.operator_conversions import as_linop
from ...core.precision import in_double, in_precision
from ...core.progress import Progress
from ...core.settings import Configurable, Settings, settings_of
from ...core.setup_time import sets_up
from ..driver.as_preconditioner import as_preconditioner
from ..driver.residual import NormalResidual
from ..driver.scaling import Scales, power_of_two, scale_for, times
from ..driver.unrecorded import Unrecorded
from ..driver.watching import SolveWatchers
from ..driver.workspace import Workspace
from ..preconditioners.base import savepoint
from .bidiagonal import measure_normal, measure_residual, measured
from .loop import solve

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from .result import LeastSquaresResult

#: The name of the preconditioner that scales columns.
COLUMNS = "columns"

#: Names of vectors with the length of the right-hand side; all others have the length of the
#: solution.
_LONG = frozenset({"u", "q", "r"})


class LeastSquaresWorkspace(Workspace):
    """The arrays of one solve, with vectors of two lengths.

    Attributes
    ----------
    AH : LinOp
        The conjugate transpose of ``A``.
    t, z : arrays, shape (n, k)
        ``A^H`` times the residual or ``u``, and ``M`` times the former.
    """

    AH: LinOp
    residual: NormalResidual

    def __init__(self, A: LinOp, AH: LinOp, M: LinOp | None, columns: int, scales: Scales) -> None:
        super().__init__(A, None, columns, scales)
        self.n, self.AH = A.local_columns, times(scales.A, AH)
        M = self.M = None if M is None else times(scales.M, M)
        self.residual = NormalResidual(self.A, self.AH, A.local_rows, self.n, columns)
        self.vectors("u", "q", "t", "p")
        if M is None:
            self.z, self.v = self.t, self.p
        else:
            self.vectors("z", "v")
            M._apply(self.t, self.z, 1.0, 0.0)  # prepares its one-time data

    def vectors(self, *names: str) -> None:
        """Allocate blocks with the number of rows that belongs to their names."""
        for name in names:
            rows = self.A.local_rows if name in _LONG else self.A.local_columns
            self._make((name,), (rows, self.k), self.dtype)


class LeastSquaresSolver(Unrecorded, LinOp, metaclass=Configurable):
    """The base of solvers that minimize ``|A x - b|`` for operators of any shape.

    A subclass has ``initialize``, which starts the process from the true residual ``work.r`` and
    ``work.t = A^H r``, and ``iterate``, one iteration. A solver is an operator, ``solver @ b``;
    without a matrix, ``Lsmr(damp=0.1)`` is :class:`wollemi.Settings`.
    """

    CALLED = ("allocate", "initialize", "iterate")

    SHARED = True

    #: The key of a solver in dictionaries of settings.
    ROLE: ClassVar[str] = "solver"

    _options: dict[str, Any]

    def __init__(
        self,
        A: Any,
        M: Any = None,
        *,
        damp: float = 0.0,
        atol: float = 1e-6,
        btol: float = 1e-6,
        conlim: float = 1e8,
        maxiter: int | None = None,
        executor: Executor | str | None = None,
    ) -> None:
        for name, value in {"atol": atol, "btol": btol, "conlim": conlim, "damp": damp}.items():
            _require_number(name, value)
        limit = None if maxiter is None else whole_number(maxiter, "maxiter")
        self.A = as_linop(A, executor)
        if self.A._follows and isinstance(M, LinOp):
            self.A, M = brought_together("the solver", self.A, M)
        self.damp, self.atol, self.btol, self.conlim = map(float, (damp, atol, btol, conlim))
        self.executor = self.A.executor
        self.shape = self.A.shape[::-1]
        self.maxiter = 10 * max(self.shape[0], 1) if limit is None else limit
        self._asked_M = M
        self.M = self._preconditioner()
        self.dtype = common_dtype(*(op.dtype for op in (self.A, self.M) if op is not None))
        self._adjoint_of = self._version
        self.adjoint = self.A.H  # raises if A has no adjoint
        self._workspaces: dict[tuple[str, int], list[LeastSquaresWorkspace]] = {}

    # methods of a subclass

    @abstractmethod
    def allocate(self, work: LeastSquaresWorkspace) -> None:
        """Allocate the arrays of the method in ``work``."""

    @abstractmethod
    def initialize(self, work: LeastSquaresWorkspace) -> None:
        """Start from the true residual ``work.r``, ``work.t = A^H r`` and ``work.z = M t``."""

    @abstractmethod
    def iterate(self, work: LeastSquaresWorkspace) -> None:
        """Do one iteration."""

    # methods for users

    @property
    def settings(self) -> Settings:
        """The class and the options of this solver, without the matrix."""
        return settings_of(self)

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        callback: Callable[[Any], Any] | None = None,
        progress: bool = False,
        loggers: Sequence[Logger] = (),
    ) -> LeastSquaresResult:
        """Minimize ``|A x - b|``.

        Parameters
        ----------
        b : array, shape (m,) or (m, k)
            Right-hand sides; each has its own stopping status.
        x0 : array, shape (n,) or (n, k), optional
            Initial guess; zero by default. It is not changed.
        callback : callable, optional
            Called as ``callback(xk)`` after each iteration. The solve ends if it returns True.
        progress : bool
            Whether to show a progress bar.
        loggers : sequence of Logger
            Further observers. They get norms of ``A.H @ (b - A x)``, as in ``residuals`` of the
            result, and the threshold of the second rule.

        Returns
        -------
        LeastSquaresResult
            The solution with its verdict, the norms and the condition estimate; unpacks into
            ``x, info``.

        Raises
        ------
        ShapeMismatch, InvalidArgument
            If ``b`` or ``x0`` do not match the operator, or are not finite.
        SolveInterrupted
            On Ctrl-C; its ``result`` is the result so far.
        """
        if callback is not None and not callable(callback):
            raise InvalidArgument(f"callback: expected a function, got {callback!r}")
        watching = [*checked_loggers(loggers), *([Progress()] if progress else [])]
        self.A._follow_writes()
        return solve(self, b, x0, SolveWatchers(callback, None, watching))

    def _savepoint(self) -> Callable[[], None]:
        return savepoint([self], self.A)

    @sets_up
    def update(self, A: Any = None) -> None:
        """Update to new values of the matrix, or to another operator with the same shape.

        Raises
        ------
        ShapeMismatch, ExecutorMismatch
            If ``A`` does not match; the solver is not changed then.
        """
        operator = self.A if A is None else as_linop(A, self.executor)
        if operator.shape != self.A.shape:
            raise ShapeMismatch(
                f"{type(self).__name__}.update: expected an operator of {self.A.shape[0]}x"
                f"{self.A.shape[1]}, got {operator.shape[0]}x{operator.shape[1]}"
            )
        same_executor("the solver", self.A, operator)
        adjoint = operator.H
        follow = getattr(self.M, "update", None)
        if follow is not None and not isinstance(self._asked_M, str):
            follow(operator)
        self.A, self.adjoint, self._adjoint_of = operator, adjoint, self._version
        self.M = self._preconditioner()
        self._workspaces.clear()

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        solution = solve(self, x, None, SolveWatchers(None, None, ()), within=True).x
        self.executor.run(vector.axpby, solution, y, alpha, beta)

    @property
    def partition(self) -> Any:
        """The distribution of solutions, if a group of executors shares ``A``."""
        return self.A.column_partition

    @property
    def column_partition(self) -> Any:
        """The distribution of right-hand sides, if a group of executors shares ``A``."""
        return self.A.partition

    @property
    def local_rows(self) -> int:
        """The length of this executor's part of solutions."""
        return self.A.local_columns

    @property
    def resident(self) -> bool:
        """False: the host decides between cycles."""
        return False

    def to(self, executor: Executor | str) -> Self:
        """Return this solver with its operators on another executor."""
        M = self._asked_M
        moved = M.to(executor) if isinstance(M, LinOp) else M
        return self._remade(self.A.to(executor), moved)

    def astype(self, dtype: Any) -> Self:
        """Return this solver computing in ``dtype``; itself if it does already."""
        if np.dtype(dtype) == self.dtype:
            return self
        M = self._asked_M
        return self._remade(self.A.astype(dtype), M.astype(dtype) if isinstance(M, LinOp) else M)

    def _remade(self, A: LinOp, M: Any) -> Self:
        made: Self = type(self)(A, **{**self._options, "M": M})
        return made

    # ---- operators

    @property
    def scales_columns(self) -> bool:
        """Whether M is the scaling of the columns."""
        return isinstance(self._asked_M, str) and self._asked_M == COLUMNS

    @property
    def _version(self) -> int:
        return int(getattr(self.A, "_values_version", 0))

    def _preconditioner(self) -> LinOp | None:
        M, A = self._asked_M, self.A
        if M is None or (isinstance(M, str) and M == "none"):
            return None
        if isinstance(M, str):
            if M != COLUMNS:
                raise InvalidArgument(f'M: expected "columns", "none" or an operator, got {M!r}')
            return column_scaling(A, self.damp)
        if isinstance(M, Settings):
            return as_preconditioner(M.on(A.H @ A), _Square(A))
        return as_preconditioner(M, _Square(A))

    def take_workspace(self, dtype: Any, columns: int) -> LeastSquaresWorkspace:
        """Return arrays that no other solve uses: new ones if all are in use."""
        self.executor.refuse_host(SOLVES)
        if self._adjoint_of != self._version:
            # the conjugate of a complex matrix and the column scaling are copies
            self.update()
        free = self._workspaces.setdefault((str(np.dtype(dtype)), columns), [])
        while free:
            try:
                work = free.pop()  # atomic: several threads may call this
            except IndexError:
                break
            if not work.outdated and work.resets == resets_of(self.executor):
                return work
        return self._new_workspace(dtype, columns)

    def give_back(self, work: LeastSquaresWorkspace) -> None:
        """Keep the arrays of a solve for the next one."""
        self._workspaces.setdefault((str(np.dtype(work.dtype)), work.k), []).append(work)

    def _new_workspace(self, dtype: Any, columns: int) -> LeastSquaresWorkspace:
        M = None if self.M is None else in_precision(self.M, dtype)._private()
        # the CSR copy that products with a Csc use: loops fuse products with a Csr
        adjoint = self.adjoint.astype(dtype)
        A, AH = self.A.astype(dtype)._private(), getattr(adjoint, "by_rows", adjoint)._private()
        if self.damp:
            A, AH = Damped(A, AH, self.damp), Damped(A, AH, self.damp).H
        scales = Scales(scale_for(A), 1.0 if M is None or M.varies else scale_for(M))
        work = LeastSquaresWorkspace(A, AH, M, columns, scales)
        work.make(measured)
        self.allocate(work)
        preconditioned = np.full(columns, M is not None, np.uint8)
        self.executor.copy_into(work.preconditioned, preconditioned)
        resident = A.resident and AH.resident and (M is None or M.resident)
        work.iteration = Iteration(lambda: self.iterate(work), work.status, resident)
        work.beginning = Replay(lambda: self._begin(work), resident)
        work.verifying = Replay(lambda: _measure(work), resident)
        return work

    def _begin(self, work: LeastSquaresWorkspace) -> None:
        self.executor.run(vector.axpby, work.r, work.u, 1.0, 0.0)
        self.initialize(work)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_workspaces": {}}


def _measure(work: LeastSquaresWorkspace) -> None:
    """Compute the true residual of the right-hand side in ``r``, and multiply it by ``A^H``."""
    work.residual.make(work.x, work.r)
    measure_residual(work)
    work.residual.make_normal(work.r, work.t)
    if work.M is not None:
        work.M._apply(work.t, work.z, 1.0, 0.0)
    measure_normal(work)


def _require_number(name: str, value: Any) -> None:
    try:
        fits = bool(value >= 0) and value == value
    except (TypeError, ValueError):
        fits = False
    if not fits or (name == "damp" and not np.isfinite(value)):
        raise InvalidArgument(f"{name}: expected a number of at least 0, got {value!r}")


class _Square(LinOp):
    """Represents the normal equations' matrix where a shape and an executor are needed."""

    def __init__(self, A: LinOp) -> None:
        self.shape = (A.shape[1], A.shape[1])
        self.dtype, self.executor, self._follows = A.dtype, A.executor, A._follows
        self._partition = A.column_partition

    @property
    def partition(self) -> Any:
        """The distribution of the rows."""
        return self._partition

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        raise NotImplementedError

    def to(self, executor: Executor | str) -> LinOp:
        raise NotImplementedError

    def astype(self, dtype: Any) -> LinOp:
        raise NotImplementedError


def column_scaling(A: LinOp, damp: float = 0.0) -> Diagonal:
    """Return a multiple of the inverse of the diagonal of ``A.H @ A + damp^2``.

    The multiple is a power of two that scales the largest diagonal entry near one. Zero columns
    have the inverse of that power.

    Raises
    ------
    InvalidArgument
        If the columns are not known.
    """
    lengths = np.hypot(_column_norms(A), damp)
    known = np.where((lengths > 0) & np.isfinite(lengths), lengths, 1.0)
    largest = float(np.max(known, initial=0.0))
    if A.executor.links is not None:
        largest = max(A.executor.links.all(largest))
    known = known * power_of_two(largest or 1.0)
    real = np.zeros(0, A.dtype).real.dtype
    with np.errstate(over="ignore", under="ignore"):
        inverse = np.clip(known**-2.0, np.finfo(real).tiny, np.finfo(real).max)
    return Diagonal(inverse.astype(A.dtype), executor=A.executor)


def _column_norms(A: LinOp) -> np.ndarray[Any, Any]:
    """Return the norms of the columns of a matrix; on a member of a group, of its columns."""
    if isinstance(A, SharedCsr):
        found = norm(A.H.extended, axis=1)
    elif isinstance(A, Matrix):
        found = norm(A, axis=0)
    else:
        raise InvalidArgument(
            f'M="columns" needs a matrix to read its columns; got {type(A).__name__}. Pass '
            "wl.Diagonal(1 / squares of their norms)"
        )
    return np.asarray(A.executor.to_host(found), np.float64)


class Damped(LinOp):
    """The operator ``A`` with ``damp`` times the identity below it.

    Parameters
    ----------
    A, AH : LinOp
        The operator of shape (m, n) and its conjugate transpose.
    damp : float
        The factor.
    """

    def __init__(self, A: LinOp, AH: LinOp, damp: float, *, adjoint: bool = False) -> None:
        self.operator, self.conjugate, self.damp, self.adjoint = A, AH, damp, adjoint
        m, n = A.shape
        self.m = A.local_rows
        self.shape = (n, m + n) if adjoint else (m + n, n)
        self.dtype, self.executor = A.dtype, A.executor

    @property
    def local_rows(self) -> int:
        """The length of this executor's part of the products."""
        n = self.operator.local_columns
        return n if self.adjoint else self.m + n

    @property
    def local_columns(self) -> int:
        """The length of this executor's part of the vectors to be multiplied."""
        n = self.operator.local_columns
        return self.m + n if self.adjoint else n

    @property
    def resident(self) -> bool:
        """Whether both operators are resident."""
        return self.operator.resident and self.conjugate.resident

    @property
    def varies(self) -> bool:
        """Whether applications are not one fixed linear map."""
        return self.operator.varies

    @property
    def H(self) -> LinOp:
        """The conjugate transpose."""
        return Damped(self.operator, self.conjugate, self.damp, adjoint=not self.adjoint)

    def _in_double(self) -> LinOp | None:
        A, AH = in_double(self.operator), in_double(self.conjugate)
        if A is None or AH is None:
            return None
        return Damped(A, AH, self.damp, adjoint=self.adjoint)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        run = self.executor.run
        if self.adjoint:
            self.conjugate._apply(x[: self.m], y, alpha, beta)
            run(vector.axpby, x[self.m :], y, alpha * self.damp, 1.0)
        else:
            self.operator._apply(x, y[: self.m], alpha, beta)
            run(vector.axpby, x, y[self.m :], alpha * self.damp, beta)

    def to(self, executor: Executor | str) -> LinOp:
        """Return this operator on another executor."""
        moved = self.operator.to(executor), self.conjugate.to(executor)
        return Damped(*moved, self.damp, adjoint=self.adjoint)

    def astype(self, dtype: Any) -> LinOp:
        """Return this operator computing in ``dtype``."""
        made = self.operator.astype(dtype), self.conjugate.astype(dtype)
        return Damped(*made, self.damp, adjoint=self.adjoint)
