"""Krylov batch solvers: one solver for each system, in one call."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.batch import BatchMatrix, BatchResult, MixedBatch
from ...core.batch.systems import MemberPrograms, Systems
from ...core.batch.tolerances import Tolerances
from ...core.batch.verdicts import Verdicts
from ...core.dtypes import common_dtype, real_dtype
from ...core.errors import (
    ExecutorMismatch,
    InvalidArgument,
    InvalidCall,
    ShapeMismatch,
    WollemiError,
)
from ...core.linop import LinOp
from ...core.registry import executor as executor_by_name
from ...core.settings import Settings
from ...core.status import Stop
from ...core.stopping import Criterion
from ..driver.as_preconditioner import as_preconditioner
from ..driver.scaling import LEAST_NORM, SAFE_NORMS
from ..driver.unrecorded import Unrecorded
from .member import Member, criterion
from .mixed import MixedSolver
from .operands import Operands, operands, tolerances
from .preconditioner import BatchPreconditioner
from .run import BatchRun, replacement

if TYPE_CHECKING:
    from ...core.executor import Executor
    from ..krylov.base import KrylovSolver

Numbers = np.ndarray[Any, Any]

#: Try at most this many matrices until the preconditioner of one can be built.
FIRST = 8


class BatchSolver(Unrecorded):
    """A Krylov solver for every system of a batch; ``wl.solvers.Cg(A)`` of a batch creates it.

    Parameters
    ----------
    kind : type
        The class of the solver.
    A : BatchMatrix
        Square matrices.
    M : str, Settings, BatchPreconditioner, BatchMatrix, LinOp or callable, optional
        A name or settings create a preconditioner for each matrix. A batch has an operator for
        each. Any other operator serves all systems.
    rtol, atol : float or array, shape batch_shape
        Tolerances: one for all systems, or one for each.
    maxiter : int, optional
        Iteration limit of each system; ``10 n`` by default.
    stop : Criterion, optional
        Replaces ``rtol``, ``atol`` and ``maxiter``.
    executor : Executor or str, optional
        The executor to which the batch is moved if it has none.
    **options
        The options of the solver.

    Notes
    -----
    Each system is solved with the same operations as by the solver for one matrix. Hence its
    verdict is based on its own true residual, and its solution does not depend on the other systems
    in any bit.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> data = np.array([[4.0, 1.0, 1.0, 3.0], [2.0, 0.0, 0.0, 5.0]])
    >>> A = wl.Csr((data, [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    >>> result = wl.solvers.Cg(A, M="jacobi", rtol=[1e-10, 1e-4]).solve(np.ones((2, 2)))
    >>> result.converged, result.iterations
    (array([ True,  True]), array([2, 1]))
    >>> np.round(result.x, 4)
    array([[0.1818, 0.2727],
           [0.5   , 0.2   ]])
    """

    __array_ufunc__ = None

    def __init__(
        self,
        kind: type[KrylovSolver],
        A: BatchMatrix,
        M: Any = None,
        *,
        rtol: Any = 1e-5,
        atol: Any = 0.0,
        maxiter: int | None = None,
        stop: Criterion | None = None,
        executor: Executor | str | None = None,
        **options: Any,
    ) -> None:
        if A.shape[0] != A.shape[1]:
            raise ShapeMismatch(
                f"{kind.__name__} needs square matrices, got {A.shape[0]}x{A.shape[1]}"
            )
        Settings(kind, options)  # raises for options that the solver does not have
        if stop is not None and not isinstance(stop, Criterion):
            raise InvalidArgument(
                f"stop: expected a criterion such as wl.stop.RelativeResidual(1e-8), got {stop!r}"
            )
        if M is None:
            M = options.pop("inner", None)  # the name of M in Ir
        self._options = {"rtol": rtol, "atol": atol, "maxiter": maxiter, "stop": stop, **options}
        if executor is not None and A._follows:
            A = A.to(executor)
        M = self._checked(M, A)
        self.kind, self.A, self.M, self.stop, self.options = kind, A, M, stop, options
        self.shape, self.batch_shape, self.executor = A.shape, A.batch_shape, A.executor
        self.tolerances = tolerances(A, rtol, atol)
        limit = 10 * max(A.shape[0], 1) if maxiter is None else maxiter
        criterion(0.0, 0.0, limit)  # raises for an invalid iteration limit
        self.limit = int(limit)
        if isinstance(M, (BatchMatrix, BatchPreconditioner)):
            self._check_batch(M)
        self._cached_members: dict[Any, list[Member]] = {}

    @staticmethod
    def _checked(M: Any, A: BatchMatrix) -> Any:
        """Return ``M``; an operator for all systems is converted to match their matrices."""
        for_each = (str, Settings, type, BatchPreconditioner, BatchMatrix)
        if M is None or isinstance(M, for_each) or (callable(M) and not hasattr(M, "shape")):
            return M
        if isinstance(M, LinOp):
            if tuple(M.shape) != A.shape:
                raise ShapeMismatch(f"M: expected an operator of shape {A.shape}, got {M.shape}")
            return M
        return as_preconditioner(M, A.tocsr().pattern)

    def _check_batch(self, M: Any) -> None:
        if (M.batch_shape, M.shape) != (self.batch_shape, self.shape):
            raise ShapeMismatch(
                f"M: expected {self.batch_shape} operators of {self.shape}, got {M.batch_shape} "
                f"of {M.shape}"
            )
        if M.executor != self.executor:
            raise ExecutorMismatch(
                f"M lives on {M.executor.name} and the batch on {self.executor.name}: move one"
            )

    def __repr__(self) -> str:
        return f"<{self.kind.__name__} of {self.A!r}>"

    # methods for users

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of solves with real single-precision right-hand sides."""
        return self._dtype()

    def _dtype(self, *dtypes: Any) -> np.dtype[Any]:
        requested = self.options.get("dtype")
        known_dtypes = [self.A.dtype, *dtypes]
        if getattr(self.M, "dtype", None) is not None:
            known_dtypes.append(self.M.dtype)
        if requested is None:
            return common_dtype(*known_dtypes)
        wide = (
            [np.dtype(np.complex64)] if any(np.dtype(d).kind == "c" for d in known_dtypes) else []
        )
        return common_dtype(requested, *wide)

    @property
    def settings(self) -> Settings:
        """The class and the options, without the batch."""
        M = self.M.settings if isinstance(self.M, BatchPreconditioner) else self.M
        return Settings(self.kind, {"M": M, **self._options})

    def update(self, A: BatchMatrix | None = None) -> None:
        """Update the solver to new values of the batch, or to another batch with its pattern.

        Parameters
        ----------
        A : BatchMatrix, optional
            The new batch; by default, the solver's batch with changed values.

        Raises
        ------
        ShapeMismatch
            If the shapes differ.
        """
        if A is None:
            return
        self.A = replacement(self, A)
        self._cached_members.clear()

    def _remade(self, A: BatchMatrix, M: Any) -> Self:
        return type(self)(self.kind, A, M, **self._options)

    @property
    def T(self) -> Self:
        """Solvers of the transposes."""
        return self._remade(self.A.T, self._turned("T"))

    @property
    def H(self) -> Self:
        """Solvers of the conjugate transposes."""
        return self._remade(self.A.H, self._turned("H"))

    def _turned(self, letter: str) -> Any:
        if isinstance(self.M, BatchPreconditioner):
            return BatchPreconditioner(getattr(self.M.A, letter), self.M.settings)
        return getattr(self.M, letter) if hasattr(self.M, "shape") else self.M

    def to(self, executor: Executor | str) -> Self:
        """Return these solvers on another executor."""
        M = self.M.to(executor) if hasattr(self.M, "to") else self.M
        return self._remade(self.A.to(executor), M)

    def astype(self, dtype: Any) -> Self:
        """Return these solvers computing in ``dtype``."""
        return self._remade(self.A.astype(dtype), self.M)

    def __matmul__(self, b: Any) -> Any:
        """Return the solutions without their verdicts."""
        return self.solve(b).x

    def solve(self, b: Any, x0: Any = None, *, mask: Any = None) -> BatchResult:
        """Solve ``A[k] x[k] = b[k]`` for every system.

        Parameters
        ----------
        b : array, shape (*batch_shape, n), (*batch_shape, n, k) or (n,)
            Right-hand sides; one of shape ``(n,)`` serves all systems.
        x0 : array of such a shape, optional
            Initial guesses; zero by default.
        mask : array of bool, shape batch_shape, optional
            The systems to solve. The others keep their initial guess, or zero.

        Returns
        -------
        BatchResult
            Solutions, and a verdict for each system. A system fails independently of the others if
            its matrix or right-hand side is not finite, or if its preconditioner cannot be built;
            its ``reason`` then says why.

        Raises
        ------
        ShapeMismatch, ExecutorMismatch, InvalidArgument
            If the operands do not match the batch.
        """
        began = time.perf_counter()
        entered = operands(self.A, b, x0, mask, self._dtype)
        return _Run(self, entered).result(began)

    # ---- members

    def _members(self, dtype: np.dtype[Any]) -> list[Member]:
        """Return the members for a dtype: first this executor's, then members of further ones."""
        key = (dtype, self.A._changes if self.A.dtype != dtype or self.A.format != "csr" else 0)
        if key not in self._cached_members:
            self._cached_members = {
                known: m for known, m in self._cached_members.items() if known[0] != dtype
            }
            A = self.A.tocsr().astype(dtype)
            options = {name: value for name, value in self.options.items() if name != "dtype"}
            places = [self.executor, *self.executor.system_places()]
            self._cached_members[key] = [
                Member(self.kind, A, self.M, options, place) for place in places
            ]
        return self._cached_members[key]

    def _release(self) -> None:
        self._cached_members.clear()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached_members": {}}


class _Run(BatchRun):
    """One solve of all systems."""

    solver: BatchSolver

    def __init__(self, solver: BatchSolver, entered: Operands) -> None:
        super().__init__(solver, entered, [])
        self.members = solver._members(np.dtype(entered.b.dtype))

    def result(self, began: float) -> BatchResult:
        """Solve all systems and return their result."""
        entered = self.operands
        count = entered.count if entered.requested_solves is None else entered.requested_solves.size
        together = bool(count and self.solver.shape[0]) and self._together()
        left = self.verdicts.undecided
        if together:
            self.notes.append(f"systems solved side by side: {count - left.size}")
        for s in left.tolist():
            self._alone(s)
        return self.batch_result(began)

    def _stop(self, s: int) -> Criterion:
        solver, k = self.solver, s // self.operands.width
        if solver.stop is not None:
            return solver.stop
        own = solver.tolerances
        return criterion(float(own.relative[k]), float(own.absolute[k]), solver.limit)

    # ---- all systems together, by the recorded programs of one

    def _together(self) -> bool:
        """Let the executor solve the systems by recorded programs; return False if it cannot."""
        solver, entered = self.solver, self.operands
        on = solver.executor
        places = self.members[1:]
        if not places or on.observed:
            return False
        programs = [self._programs_of(member) for member in places]
        ready = [p for p in programs if p is not None]
        if len(ready) < len(programs):
            return False
        real = real_dtype(entered.b.dtype)
        linear = places[0].solver._linear if places[0].solver is not None else None
        assert linear is not None
        tolerances, limit = solver.tolerances, solver.limit
        if solver.stop is not None:
            count = (solver.A.count,)
            tolerances = Tolerances(
                np.broadcast_to(np.float64(linear.relative), count),
                np.broadcast_to(np.float64(linear.absolute), count),
            )
            limit = 10 * solver.shape[0] if linear.iterations is None else int(linear.iterations)
        chosen = entered.requested_solves
        rows = slice(None) if chosen is None else on.from_host(chosen)
        x = entered.memory_of_solutions()[rows]
        systems = Systems(
            values=places[0].A._values,
            matrix=None if chosen is None else entered.matrix[chosen],
            width=entered.width,
            b=entered.b[rows],
            x=x,
            started=entered.started,
            tolerances=entered.of_solves(tolerances, chosen),
            limit=limit,
            least=SAFE_NORMS[real][0],
            most=SAFE_NORMS[real][1],
            least_norm=LEAST_NORM[real],
            verdicts=self.verdicts if chosen is None else Verdicts(chosen.size),
        )
        start = on.copy(x) if entered.started else None
        if not on.solve_systems(ready, systems):
            entered.forget_solutions()
            return False
        left = systems.verdicts.undecided
        if left.size:  # they restart from their initial guess
            places_left = on.from_host(left)
            x[places_left] = 0 if start is None else start[places_left]
        if chosen is not None:
            self.verdicts.take(chosen, systems.verdicts)
            entered.x[rows] = x
        return True

    def _programs_of(self, member: Member) -> MemberPrograms | None:
        """Return the programs of a member, recorded with the values of a suitable matrix."""
        if member.is_known:
            return member.known
        entered = self.operands
        first = (
            range(min(FIRST, entered.count))
            if entered.requested_solves is None
            else entered.requested_solves[:FIRST]
        )
        for s in map(int, first):
            try:
                member.load(s // entered.width, self._stop(s))
            except WollemiError:
                continue  # its preconditioner cannot be built
            member.is_known, member.known = True, member.programs()
            return member.known
        return None

    # ---- one system at a time

    def _alone(self, s: int) -> None:
        """Solve one system by the solver for one matrix."""
        entered, member = self.operands, self.members[0]
        try:
            solver = member.load(s // entered.width, self._stop(s))
        except WollemiError as error:
            self.fail(s, Stop.UNPREPARED, f"{Stop.UNPREPARED.sentence}: {error}")
            return
        try:
            result = solver.solve(entered.b[s], entered.x[s] if entered.started else None)
        except InvalidCall:  # an error of the solver class, for every system
            raise
        except (InvalidArgument, FloatingPointError) as error:
            self.fail(s, Stop.NOT_FINITE, f"not finite: {error}")
            return
        self.take(s, result)


def batch_solver(kind: Any, A: Any, *arguments: Any, **options: Any) -> Any:
    """Return a solver of this class for a batch, or for batches of several patterns."""
    if isinstance(A, MixedBatch):
        return MixedSolver(lambda batch, **o: kind(batch, **o), A, *arguments, **options)
    where = options.get("executor")
    if where is not None:
        A = A.to(executor_by_name(where))
    return BatchSolver(kind, A, *arguments, **options)
