"""The common base of all Krylov solvers: cycles, verification, and the verdict."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...core.capture import SOLVES
from ...core.dtypes import common_dtype, is_complex, name_of, requested_dtype
from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.executor import brought_together, same_executor
from ...core.formats.stored import lowered
from ...core.hooks import is_of_wollemi
from ...core.iteration import Cycles, Iteration, Replay
from ...core.links import resets_of
from ...core.linop import LinOp
from ...core.loggers import Logger, checked_loggers
from ...core.operations import vector
from ...core.operator_conversions import as_linop
from ...core.precision import in_precision
from ...core.progress import Progress
from ...core.result import Result
from ...core.settings import Configurable, Settings, settings_of
from ...core.setup_time import sets_up
from ...core.status import Stop
from ...core.stopping import (
    AbsoluteResidual,
    Criterion,
    Iterations,
    Linear,
    RelativeResidual,
    linear,
    true_residual_period,
)
from ...core.suggest import OUT_REMEDY, checked_keywords
from ...core.vector_conversions import VectorConverter
from ..driver import host_writes
from ..driver.as_preconditioner import as_preconditioner
from ..driver.loop import solve
from ..driver.of_batches import OfBatches
from ..driver.recorded import RecordedSolve
from ..driver.scaling import Rescaling, Scales
from ..driver.watching import SolveWatchers
from ..driver.workspace import Workspace, version_of
from ..preconditioners import preconditioner
from ..preconditioners.base import savepoint

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ..driver.hermitian import Answer

Callback = Callable[[Any], Any]

#: Allowed values of ``side``: where ``M`` is applied.
SIDES = ("right", "left")

#: The operations of every loop, in addition to the steps of its method.
LOOPS_RUN = ("vector.enter", "vector.fill", "vector.norm", "vector.largest")


def _remedy_of_solve(name: str, value: Any) -> str:
    """Return the remedy for an unknown parameter of ``solve``, or ""."""
    return OUT_REMEDY if name == "out" else ""


class KrylovSolver(OfBatches, Rescaling, LinOp, metaclass=Configurable):
    """The base of iterative solvers.

    A subclass implements three methods: ``initialize`` sets up the recurrence from the true
    residual ``work.r``, ``iterate`` does one iteration (operations on arrays of the executor,
    without decisions of the host), ``finish`` completes ``work.x``. They run in *cycles*. Each
    cycle starts with the true residual, and only this residual decides on success. A column with a
    wrong recurrence continues with another cycle as long as cycles reduce its residual.

    ``iterate`` applies ``work.M`` unless it is None; a class without a preconditioner declares
    ``TAKES_M = False``.

    A solver is an operator, ``solver @ b``, and can therefore precondition another solver. Without
    a matrix, ``Cg(rtol=1e-8)`` is :class:`wollemi.Settings`; its ``.on(A)`` creates the solver.

    With ``dtype``, a solver computes in that precision: its matrix and right-hand sides are rounded
    to it, and its solutions have this dtype. It can serve as an inner solver of low precision,
    ``Ir(A, inner=Cg(rtol=1e-4, dtype="float32"))``.
    """

    CALLED = ("allocate", "initialize", "iterate", "begin", "next_cycle", "finish")

    SHARED = True
    #: The key of a solver in dictionaries of settings.
    ROLE: ClassVar[str] = "solver"
    _options: dict[str, Any]
    #: Number of iterations of a cycle; None if only the status ends it.
    cycle: int | None = None

    #: Whether ``work.x`` is the iterate after every iteration; if not, only at the end of a cycle.
    keeps_iterate: ClassVar[bool] = True

    #: Whether the host drives the iterations, because they are more than operations of the
    #: executor.
    BY_HOST: ClassVar[bool] = False

    #: Whether the method accepts a preconditioner. A class with False refuses ``M``, and
    #: ``wl.solve`` passes none. A class with True that never applies ``work.M`` raises in the first
    #: solve.
    TAKES_M: ClassVar[bool] = True

    #: Whether ``M`` may be a different operator in every iteration (:attr:`LinOp.varies`).
    FLEXIBLE: ClassVar[bool] = False

    #: The flexible method for the same class of matrices.
    FLEXIBLE_KIN: ClassVar[str] = "Fgmres"

    #: The operators that must be Hermitian: a failed solve names the ones that are not.
    HERMITIAN: ClassVar[tuple[str, ...]] = ()

    #: Whether the method minimizes the residual of singular systems without a solution.
    TAKES_SINGULAR: ClassVar[bool] = False

    #: A workspace vector that each iteration writes before it reads it: true residuals are computed
    #: in it between two iterations. If it is ``r``, they are computed only at the end of a cycle.
    SPARE: ClassVar[str] = "r"

    #: The stops after which a column gets no other cycle. Other stops lead to another cycle from
    #: the current iterate.
    FINAL: ClassVar[frozenset[Stop]] = frozenset({Stop.INDEFINITE})

    #: After a cycle that ended early, another one follows only if the first one reduced the true
    #: residual to this fraction.
    PROGRESS: ClassVar[float] = 0.5

    #: The meaning of step codes that differ from the default for this method.
    MEANS: ClassVar[Mapping[Stop, Stop]] = MappingProxyType({})

    #: A solve with more iterations checks whether updates have made ``M`` poor.
    _expected_iterations: int = 0

    #: Iterations of the first solves, and the number of updates of ``M`` at that time.
    _first_iterations: tuple[int, int] | None = None

    @classmethod
    def loop_runs(cls) -> tuple[str, ...]:
        """Return the operations, and groups of operations, that a loop runs."""
        return (cls.__name__.lower(), *LOOPS_RUN)

    def __init__(
        self,
        A: Any,
        M: Any = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        stop: Criterion | None = None,
        dtype: Any = None,
        executor: Executor | str | None = None,
    ) -> None:
        self.A = as_linop(A, executor)
        self.requested_dtype = None if dtype is None else requested_dtype(dtype)
        if self.requested_dtype is not None:
            self.A = lowered(self.A, self._precision_for(self.A.dtype))
        rows, columns = self.A.shape
        if rows != columns:
            raise ShapeMismatch(
                f"{type(self).__name__} needs a square operator, got {rows}x{columns}; "
                "wl.solvers.Lsmr solves least squares problems"
            )
        if self.A._follows and isinstance(M, LinOp):
            self.A, M = brought_together("the solver", self.A, M)
        M = preconditioner(M, self.A)
        if M is not None and not self.TAKES_M:
            raise InvalidArgument(
                f"{type(self).__name__} takes no preconditioner (TAKES_M = False): leave M out, or "
                "give None"
            )
        self.M = None if M is None else as_preconditioner(M, self.A)
        if stop is None:
            stop = RelativeResidual(rtol) | AbsoluteResidual(atol)
            stop = stop | Iterations(10 * max(rows, 1) if maxiter is None else maxiter)
        elif not isinstance(stop, Criterion):
            raise InvalidArgument(
                f"stop: expected a criterion such as wl.stop.RelativeResidual(1e-8), got {stop!r}"
            )
        elif maxiter is not None:
            stop = stop | Iterations(maxiter)
        self.stop = stop
        self.shape = self.A.shape
        self.executor = self.A.executor
        self.dtype = common_dtype(*(op.dtype for op in (self.A, self.M) if op is not None))
        self.executor.compile_ahead(self.loop_runs(), self.dtype)
        self._workspaces: dict[tuple[str, int], list[Workspace]] = {}
        self._scales: dict[str, Scales] = {}
        self._hermitian: dict[str, Answer] = {}

    def _precision_for(self, *dtypes: Any) -> np.dtype[Any]:
        """Return the dtype of the computation for operands of these dtypes."""
        if self.requested_dtype is None:
            return common_dtype(*dtypes)
        wide = [np.dtype(np.complex64)] if any(map(is_complex, dtypes)) else []
        return common_dtype(self.requested_dtype, *wide)

    # methods of a subclass

    @abstractmethod
    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of the method in ``work``."""

    @abstractmethod
    def initialize(self, work: Workspace) -> None:
        """Start a cycle from ``work.x`` and its true residual ``work.r``."""

    @abstractmethod
    def iterate(self, work: Workspace) -> None:
        """Do one iteration."""

    def begin(self, work: Workspace) -> None:
        """Reset the data of an earlier solve in ``work``, before the first cycle."""

    def next_cycle(self, work: Workspace) -> int | None:
        """Return the number of iterations of the next cycle; called once for each cycle."""
        return self.cycle

    def finish(self, work: Workspace) -> None:
        """Complete ``work.x`` at the end of a cycle."""

    def least_squares(self, work: Workspace, b: Array, columns: Sequence[int]) -> list[int]:
        """Return the stagnated columns that are least squares solutions for ``b``.

        Methods that cannot decide this return none: the columns stay stagnated.
        """
        return []

    # methods for users

    @property
    def partition(self) -> Any:
        """The distribution of rows, if a group of executors shares the system; else None."""
        return self.A.partition

    @property
    def local_rows(self) -> int:
        """The length of this executor's part of the vectors."""
        return self.A.local_rows

    @cached_property
    def _vector_converter(self) -> VectorConverter:
        """The edge of the operator, if no group shares it."""
        return VectorConverter(self)

    @cached_property
    def _period(self) -> int | None:
        """The number of iterations between true residuals that the criterion asks for, or None."""
        return true_residual_period(self.stop)

    @cached_property
    def _linear(self) -> Linear | None:
        """The linear form of the criterion if it needs no norms, or None."""
        return linear(self.stop)

    @cached_property
    def _spares_cycles(self) -> bool:
        """Whether a cycle may continue after a true residual was computed within it."""
        return self.SPARE != "r" and type(self).finish is KrylovSolver.finish

    @cached_property
    def _goes_straight(self) -> bool:
        """Whether a first cycle can run without checks of norms before it.

        A right-hand side of extreme norm starts again.
        """
        return self._linear is not None and type(self).next_cycle is KrylovSolver.next_cycle

    @property
    def _has_numbers_of_A(self) -> bool:
        """Whether the set-up depends on the values of the matrix, apart from its preconditioner.

        A user's class declares this by its own ``update``.
        """
        defined = next(kind for kind in type(self).__mro__ if "update" in vars(kind))
        return not is_of_wollemi(defined)

    @property
    def settings(self) -> Settings:
        """The class and the options of this solver, without the matrix."""
        return settings_of(self)

    def _savepoint(self) -> Callable[[], None]:
        return savepoint([self], self.A)

    @sets_up
    def update(self, A: Any = None) -> None:
        """Update the solver to new values of the matrix; plans and set-up of the pattern are kept.

        Parameters
        ----------
        A : LinOp or matrix, shape (n, n), optional
            The new operator; by default, the current one with changed values.
            ``A.update_values(data)`` and ``solver.update()`` keep all recordings; for another
            object, programs are recorded again.

        Notes
        -----
        A preconditioner that was built from the matrix, by name, by settings or by hand, is
        updated; one without ``update``, such as a function, is not changed. Multigrid keeps the
        levels that it built for the first values. If the iterations more than double, results have
        a note on this, and ``solver.settings.on(A)`` rebuilds the solver and the preconditioner.

        Raises
        ------
        ShapeMismatch, ExecutorMismatch
            If ``A`` does not match; the solver is not changed then.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.diag([2.0, 4.0]))
        >>> cg = wl.solvers.Cg(A, M="jacobi")
        >>> A.update_values(np.array([4.0, 8.0]))
        >>> cg.update()
        >>> cg @ np.array([4.0, 8.0])
        array([1., 1.])
        """
        operator = self.A if A is None else as_linop(A, self.executor)
        if self.requested_dtype is not None:
            operator = lowered(operator, self._precision_for(operator.dtype))
        if operator.shape != self.shape:
            raise ShapeMismatch(
                f"{type(self).__name__}.update: expected an operator of {self.shape[0]}x"
                f"{self.shape[1]}, got {operator.shape[0]}x{operator.shape[1]}"
            )
        same_executor("the solver", self.A, operator)
        follow = getattr(self.M, "update", None)
        if follow is not None:
            follow(operator)
        # a workspace with other operators than the solver's has copies of old values
        in_place = getattr(self.M, "updates_in_place", True)
        if operator is not self.A or self._holds_copies() or not in_place:
            self.A = operator
            self.dtype = common_dtype(*(op.dtype for op in (self.A, self.M) if op is not None))
            self._workspaces.clear()

    def _holds_copies(self) -> bool:
        return any(
            np.dtype(dtype) != op.dtype
            for dtype, _ in self._workspaces
            for op in (self.A, self.M)
            if op is not None
        )

    @property
    def T(self) -> LinOp:
        """A solver with the same settings for the transpose."""
        return self._remade(self.A.T, None if self.M is None else self.M.T)

    @property
    def H(self) -> LinOp:
        """A solver with the same settings for the conjugate transpose."""
        return self._remade(self.A.H, None if self.M is None else self.M.H)

    @checked_keywords(remedy=_remedy_of_solve)
    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        callback: Callback | None = None,
        norm_callback: Callback | None = None,
        progress: bool = False,
        loggers: Sequence[Logger] = (),
    ) -> Result:
        """Solve ``A x = b``.

        Parameters
        ----------
        b : array, shape (n,) or (n, k)
            Right-hand sides; each has its own stopping status.
        x0 : array of the shape of b, optional
            Initial guess; zero by default. It is not changed.
        callback : callable, optional
            Called as ``callback(xk)`` after each iteration (GMRES: each cycle, when ``xk`` exists).
            The solve ends if it returns True; return values that are not booleans are ignored.
        norm_callback : callable, optional
            Called with the relative residual norm after each iteration. The solve ends if it
            returns True.
        progress : bool
            Whether to show a progress bar.
        loggers : sequence of Logger
            Further observers of the solve.

        Notes
        -----
        On executors of the host, several threads may use one solver, and on all executors a
        callback may: overlapping solves work in separate arrays, which are kept.

        Returns
        -------
        Result
            The solution with its verdict; unpacks into ``x, info``.

        Raises
        ------
        ShapeMismatch, InvalidArgument
            If ``b`` or ``x0`` do not match the operator, or are not finite.
        SolveInterrupted
            On Ctrl-C; its ``result`` is the result so far.
        """
        watching = checked_loggers(loggers)
        if progress:
            watching.append(Progress())
        for name, function in (("callback", callback), ("norm_callback", norm_callback)):
            if function is not None and not callable(function):
                raise InvalidArgument(f"{name}: expected a function, got {function!r}")
        self.A._follow_writes()
        return solve(self, b, x0, SolveWatchers(callback, norm_callback, watching))

    def recorded(self, b: Array, *, out: Array) -> RecordedSolve:
        """Return a solve on fixed arrays, which a CUDA graph can capture.

        Parameters
        ----------
        b, out : array, shape (n,)
            The right-hand side and the solution: arrays of the executor in the dtype of the solve,
            on hosts also CPU tensors. Write new values to ``b`` in place.

        Returns
        -------
        RecordedSolve
            Each call solves from a zero guess; while the stream is captured, it is added to the
            graph. The solve has been called once.

        Raises
        ------
        UnsupportedOperation
            If the solve needs decisions of the host.
        InvalidArgument
            If ``b`` or ``out`` is not a vector of the executor and the dtype.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
        >>> b, x = np.array([1.0, 2.0]), np.zeros(2)
        >>> solve = wl.solvers.Cg(A, rtol=1e-10).recorded(b, out=x)
        >>> b[:] = 5.0, 4.0
        >>> solve()
        >>> x.round(6), solve.status().converged
        (array([1., 1.]), True)
        """
        return RecordedSolve(self, b, out)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        # a fixed number of iterations: the outer solver judges the result
        solution = solve(self, x, None, SolveWatchers(None, None, ()), keep_last=True).x
        self.executor.run(vector.axpby, solution, y, alpha, beta)

    @property
    def resident(self) -> bool:
        """False: the host decides between cycles."""
        return False

    @property
    def varies(self) -> bool:
        """True: the number and effect of iterations depend on the vector."""
        return True

    def notes_of(self, M: LinOp | None) -> list[str]:
        """Return the notes for the user on this method with a preconditioner."""
        if M is None or not M.varies or self.FLEXIBLE:
            return []
        return [
            f"{type(self).__name__} takes M for one fixed linear map, and {type(M).__name__} is "
            f"not: {self.FLEXIBLE_KIN} takes an M that varies"
        ]

    def to(self, executor: Executor | str) -> Self:
        """Return this solver with its operators on another executor."""
        return self._remade(self.A.to(executor), None if self.M is None else self.M.to(executor))

    def astype(self, dtype: Any) -> LinOp:
        """Return this solver computing in ``dtype``; itself if it does already."""
        if np.dtype(dtype) == self.dtype:
            return self
        M = None if self.M is None else self.M.astype(dtype)
        return self._remade(self.A.astype(dtype), M, dtype=np.dtype(dtype))

    def _remade(self, A: LinOp, M: LinOp | None, **changed: Any) -> Self:
        options = {name: changed.get(name, value) for name, value in self._options.items()}
        result: Self = type(self)(A, **{**options, "M": M})
        return result

    def workspace(self, dtype: Any, columns: int) -> Workspace:
        """Return the arrays for the next solve of ``columns`` right-hand sides."""
        work = self.take_workspace(dtype, columns)
        self.give_back(work)
        return work

    def take_workspace(self, dtype: Any, columns: int) -> Workspace:
        """Return arrays that no other solve uses: new ones if all are in use."""
        self.executor.refuse_host(SOLVES)
        return self._take_workspace(dtype, columns)

    def _take_workspace(self, dtype: Any, columns: int) -> Workspace:
        free = self._workspaces.setdefault((name_of(np.dtype(dtype)), columns), [])
        while free:
            try:
                work = free.pop()  # atomic: several threads may call this
            except IndexError:
                break
            if work.version is not None and work.version != version_of(self.A):
                continue
            if work.outdated or work.rebuilds != self._rebuilds_of_operators():
                continue
            if self.executor.links is not None and work.resets != resets_of(self.executor):
                continue
            if work.follows(self.M) and work.scales == self._scales_in(dtype):
                return work
        return self._new_workspace(dtype, columns)

    def _rebuilds_of_operators(self) -> int:
        return self.A._rebuilds + (0 if self.M is None else self.M._rebuilds)

    def give_back(self, work: Workspace) -> None:
        """Keep the arrays of a solve for the next one."""
        self._workspaces.setdefault((name_of(work.dtype), work.k), []).append(work)

    def _new_workspace(self, dtype: Any, columns: int) -> Workspace:
        M = None if self.M is None else in_precision(self.M, dtype)._private()
        A = self.A.astype(dtype)._private()
        work = Workspace(A, M, columns, self._scales_in(dtype))
        work.holds_copies = self.M is not None and self.M.dtype != work.dtype
        work.updates = getattr(self.M, "_updates", 0)
        work.rebuilds = self._rebuilds_of_operators()
        work.applies_M = host_writes.is_own(type(self))
        self.allocate(work)
        if A.dtype != self.A.dtype:
            work.version = version_of(self.A)
        resident = not self.BY_HOST and work.A.resident and (M is None or M.resident)
        work.iteration = Iteration(lambda: host_writes.iterate(self, work), work.status, resident)
        work.beginning = Replay(lambda: self.initialize(work), resident)
        work.ending = Replay(lambda: self.finish(work), resident)
        work.verifying = Replay(work.verify_all, work.A.resident)
        work.spare = getattr(work, self.SPARE)
        work.entering = Replay(lambda: work.enter(self.initialize), resident)
        work.leaving = Replay(lambda: work.leave(self.finish), resident)
        if self.cycle is not None:
            work.vectors("b")
            work.reals("begun")
            work.make_best()
            before = Replay(lambda: self._restart(work), resident)
            work.cycles = Cycles(before, work.iteration, work.ending, self.cycle)
        return work

    def _restart(self, work: Workspace) -> None:
        """Start a cycle from the true residual, and store its norms in ``work.begun``."""
        run, k = self.executor.run, work.k
        run(vector.axpby, work.b, work.r, 1.0, 0.0)
        work.verify()
        run(vector.axpby, work.status.norm.reshape(k, 1), work.begun.reshape(k, 1), 1.0, 0.0)
        work.keep()
        self.initialize(work)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_workspaces": {}, "_hermitian": {}}
