"""Direct batch solvers: factors and a verdict for each system."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.batch import BatchMatrix, BatchResult, MixedBatch
from ...core.batch.factors import (
    FACTORIZED,
    BatchFactors,
    Determinants,
    FactoredSystems,
    Layout,
    layout_of,
)
from ...core.batch.verdicts import Verdicts
from ...core.dtypes import common_dtype, real_dtype
from ...core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from ...core.factors import whole_number
from ...core.registry import executor as executor_by_name
from ...core.settings import Settings
from ...core.status import Stop
from ...core.stopping import AbsoluteResidual, RelativeResidual
from ..direct.engine import Engine, LogDeterminant, chosen_engine
from ..driver.scaling import LEAST_NORM, SAFE_NORMS
from ..driver.unrecorded import Unrecorded
from .mixed import MixedSolver
from .operands import Operands, operands, tolerances
from .run import BatchRun, replacement

if TYPE_CHECKING:
    from ...core.batch.csr import BatchCsr
    from ...core.executor import Executor
    from ..direct.solver import Direct

Numbers = np.ndarray[Any, Any]

#: Upper bound in bytes of the factors that a solver keeps. The factors of a larger batch are
#: computed in parts of this size, again in every solve.
KEPT_BYTES = 2**30

#: The engines that the batch kernels implement.
OWN = ("auto", "dense", "banded")


class BatchDirect(Unrecorded):
    """Direct solver for the systems of a batch; ``Direct(A)`` of a batch creates it.

    Parameters
    ----------
    kind : type
        The class of the solver of one matrix.
    A : BatchMatrix
        Square matrices.
    engine : str
        ``"auto"``, ``"dense"`` and ``"banded"`` factorize all matrices in parallel if the executor
        has a kernel. The engines for one matrix factorize one matrix after the other; they share
        one analysis unless it depends on values: PARDISO, for example, computes a matching and
        scaling for each matrix.
    ordering, refine
        As for :class:`Direct`.
    rtol, atol : float or array, shape batch_shape
        Tolerances of the verdict: one for all systems, or one for each.
    executor : Executor or str, optional
        The executor to which the batch is moved if it has none.

    Attributes
    ----------
    notes : list of str
        The method of the factorization.

    Notes
    -----
    Matrices with a narrow band, in their own or in reverse Cuthill-McKee order, and matrices of up
    to 200 rows are factorized with partial pivoting, one thread per matrix. Each solution is
    refined, and judged by its own true residual, with sums in double precision. A system fails
    independently of the others if it is singular, has values that are not finite, or does not meet
    its tolerance.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> data = np.array([[4.0, 1.0, 2.0, 3.0], [1.0, 2.0, 2.0, 4.0]])
    >>> A = wl.Csr((data, [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    >>> solver = wl.solvers.Direct(A)
    >>> result = solver.solve(np.ones((2, 2)))
    >>> result.converged
    array([ True, False])
    >>> np.round(result.x[0], 6)
    array([0.2, 0.2])
    >>> np.round(np.exp(solver.log_determinant().logarithm), 6)
    array([10.,  0.])
    """

    __array_ufunc__ = None

    def __init__(
        self,
        kind: type[Direct],
        A: BatchMatrix,
        *,
        engine: str = "auto",
        ordering: str | None = None,
        refine: int = 2,
        rtol: Any = 1e-5,
        atol: Any = 0.0,
        executor: Executor | str | None = None,
    ) -> None:
        if A.shape[0] != A.shape[1]:
            raise ShapeMismatch(f"Direct needs square matrices, got {A.shape[0]}x{A.shape[1]}")
        steps = whole_number(refine, "refine")
        if executor is not None and A._follows:
            A = A.to(executor_by_name(executor))
        self.kind, self.A = kind, A
        self.shape, self.batch_shape, self.executor = A.shape, A.batch_shape, A.executor
        self.engine, self.ordering, self.refine = engine, ordering, steps
        self.tolerances = tolerances(A, rtol, atol)
        self._options = {
            "engine": engine, "ordering": ordering, "refine": refine, "rtol": rtol, "atol": atol,
        }  # fmt: skip
        #: Factorizes matrices for which the executor has no batch kernel.
        self._engine = self._new_engine()
        self.layout = self._layout()
        #: The factors of the first systems and the version of the values, by dtype.
        self._cached_factors: dict[np.dtype[Any], tuple[int, BatchFactors]] = {}

    def _new_engine(self) -> Engine:
        return chosen_engine(self.engine, self.executor)(self.ordering)

    def _layout(self) -> Layout | None:
        if self.engine not in OWN or not self.shape[0] or self.ordering is not None:
            return None
        on, rows = self.executor, self.A.tocsr()
        indptr, indices = (np.asarray(on.to_host(a)) for a in (rows.indptr, rows.indices))
        return layout_of(indptr, indices, self.engine)

    def __repr__(self) -> str:
        return f"<{self.kind.__name__} of {self.A!r}>"

    # methods for users

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the factors for real single-precision right-hand sides."""
        return self.A.dtype

    @property
    def settings(self) -> Settings:
        """The class and the options, without the batch."""
        return Settings(self.kind, dict(self._options))

    @property
    def notes(self) -> list[str]:
        """The method of the factorization."""
        if self.layout is None:
            return [f"direct: engine {self._engine.name}"]
        return [f"direct: {self.layout}"]

    def update(self, A: BatchMatrix | None = None) -> None:
        """Factorize again for new values of the batch, or for another batch of the same shape.

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
            self._cached_factors.clear()
            return
        self.A = replacement(self, A)
        self.layout = self._layout()
        self._cached_factors.clear()

    def _remade(self, A: BatchMatrix) -> Self:
        return type(self)(self.kind, A, **self._options)

    @property
    def T(self) -> Self:
        """Solvers of the transposes."""
        return self._remade(self.A.T)

    @property
    def H(self) -> Self:
        """Solvers of the conjugate transposes."""
        return self._remade(self.A.H)

    def to(self, executor: Executor | str) -> Self:
        """Return these solvers on another executor."""
        return self._remade(self.A.to(executor))

    def astype(self, dtype: Any) -> Self:
        """Return these solvers computing in ``dtype``."""
        return self._remade(self.A.astype(dtype))

    def __matmul__(self, b: Any) -> Any:
        """Return the solutions without their verdicts."""
        return self.solve(b).x

    def solve(self, b: Any, x0: Any = None, *, mask: Any = None) -> BatchResult:
        """Solve ``A[k] x[k] = b[k]`` for every system, and refine the solutions.

        Parameters
        ----------
        b : array, shape (*batch_shape, n), (*batch_shape, n, k) or (n,)
            Right-hand sides; one of shape ``(n,)`` serves all systems.
        x0 : array of such a shape, optional
            Initial guess of the refinement.
        mask : array of bool, shape batch_shape, optional
            The systems to solve. The others keep their initial guess, or zero.

        Returns
        -------
        BatchResult
            Solutions, and a verdict for each system. Its iterations count applications of the
            factors.

        Raises
        ------
        ShapeMismatch, InvalidArgument
            If the operands do not match the batch.
        """
        began = time.perf_counter()
        entered = operands(self.A, b, x0, mask, lambda *dtypes: common_dtype(self.A.dtype, *dtypes))
        return _Run(self, entered).result(began)

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant of each matrix, as NumPy's ``slogdet`` does.

        Returns
        -------
        LogDeterminant
            ``sign`` and ``logarithm``, of shape ``batch_shape``. A singular matrix has the sign 0
            and the logarithm minus infinity; a matrix with values that are not finite has NaN.

        Raises
        ------
        UnsupportedOperation
            If the engine does not compute determinants.
        """
        count = self.A.count
        signs, logarithms = np.zeros(count, self.A.dtype), np.full(count, -np.inf)
        if not self.shape[0]:
            signs[:], logarithms[:] = 1, 0
        rows = self.A.tocsr()
        done = np.zeros(count, bool)
        for first, factors in self._determined(rows):
            part = slice(first, first + factors.states.size)
            done[part] = factors.states == FACTORIZED
            signs[part], logarithms[part] = factors.signs, factors.logarithms
        one = _One(self, rows)
        for k in np.flatnonzero(~done).tolist() if self.shape[0] else []:
            if not bool(np.isfinite(self.executor.to_host(rows._values[k])).all()):
                signs[k], logarithms[k] = np.nan, np.nan
                continue
            try:
                alone = one.of(k).log_determinant()
            except InvalidMatrix:
                signs[k], logarithms[k] = 0, -np.inf
            else:
                signs[k], logarithms[k] = alone.sign, alone.logarithm
        shape = self.batch_shape
        sign: Any = signs.reshape(shape)
        logarithm: Any = logarithms.reshape(shape)
        return LogDeterminant(sign, logarithm)

    # ---- factors

    def _determined(self, A: BatchCsr) -> Iterator[tuple[int, Determinants | BatchFactors]]:
        """Yield the determinants of consecutive matrices with the index of the first one."""
        if self.layout is not None and A.count:
            found = self.executor.determinants_of(self.layout, A._values)
            if found is not None:
                yield 0, found
                return
        yield from self._parts(A)

    def _parts(self, A: BatchCsr) -> Iterator[tuple[int, BatchFactors]]:
        """Yield the factors of consecutive matrices with the index of the first one."""
        layout = self.layout
        if layout is None or not A.count:
            return
        version = self.A._changes
        known = self._cached_factors.get(A.dtype)
        if known is not None and known[0] == version:
            yield 0, known[1]
            return
        together = max(1, KEPT_BYTES // max(layout.size * A.dtype.itemsize, 1))
        for first in range(0, A.count, together):
            values = A._values[first : first + together]
            factors = self.executor.factorize_systems(layout, values)
            if factors is None:
                return
            if together >= A.count:
                self._cached_factors[A.dtype] = (version, factors)
            yield first, factors

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached_factors": {}, "_engine": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._engine = self._new_engine()


class _One:
    """The solver for one matrix at a time; it keeps an analysis that does not depend on values.

    Results do not depend on the systems solved before, in any bit.
    """

    def __init__(self, solver: BatchDirect, A: BatchCsr) -> None:
        self.solver, self.A = solver, A
        self.current_solver: Direct | None = None
        self.known = -1

    def of(self, k: int) -> Direct:
        """Return the solver for matrix k.

        Raises
        ------
        InvalidMatrix
            If the matrix is singular, or has values that are not finite.
        """
        if self.current_solver is not None and self.known == k:
            return self.current_solver
        matrix = self.A._member(k)
        if self.current_solver is None or not self.current_solver._follows_exactly:
            s = self.solver
            engine = s.engine
            if engine == "auto" and s.layout is not None:
                engine = "dense" if s.layout.is_dense else "auto"
            options = {"engine": engine, "ordering": s.ordering, "refine": s.refine}
            self.current_solver = s.kind._of_members(matrix, **options)
        else:
            self.current_solver.update(matrix)
        self.known = k
        return self.current_solver


class _Run(BatchRun):
    """One solve of all systems."""

    solver: BatchDirect

    def __init__(self, solver: BatchDirect, entered: Operands) -> None:
        super().__init__(solver, entered, list(solver.notes))
        self.A = solver.A.tocsr().astype(entered.b.dtype)

    def result(self, began: float) -> BatchResult:
        """Solve all systems and return their result."""
        if not self._in_one_pass():
            for first, factors in self.solver._parts(self.A):
                self._solve_part(first, factors)
            if self.solver.layout is None:
                self._by_engine()
        one = _One(self.solver, self.A)
        for s in self.verdicts.undecided.tolist():
            self._alone(s, one)
        return self.batch_result(began)

    def _in_one_pass(self) -> bool:
        """Let the executor factorize and solve in one pass; return False if it keeps factors."""
        solver, given = self.solver, self.operands
        layout, asked = solver.layout, given.requested_solves
        if layout is None or not (given.count if asked is None else asked.size):
            return False
        given.memory_of_solutions()
        systems = self._systems(asked, 0, solver.A.count)
        if not solver.executor.solve_directly(layout, systems):
            given.forget_solutions()
            return False
        left = systems.verdicts.undecided
        if left.size and not given.started:
            systems.x[solver.executor.from_host(left)] = 0
        self._take(asked, systems)
        return True

    def _by_engine(self) -> None:
        """Let the engine of large matrices solve all systems that it can."""
        asked = self.operands.requested_solves
        if not self.A.shape[0] or not (self.operands.count if asked is None else asked.size):
            return
        systems = self._systems(asked, 0, self.A.count)
        if self.solver._engine.solve_systems(self.A.pattern, systems):
            self._take(asked, systems)
            how = "with one analysis, and judged at once"
        else:
            how = "one after the other"
        self.notes.append(f"direct: systems are solved {how}")

    def _solve_part(self, first: int, factors: BatchFactors) -> None:
        """Solve the systems of the matrices from ``first`` on."""
        given, width = self.operands, self.operands.width
        last = first + factors.states.size
        if given.requested_solves is None and last - first == self.A.count:
            asked = None
        elif given.requested_solves is None:
            asked = np.arange(first * width, last * width)
        else:
            asked = given.requested_solves[
                (given.requested_solves >= first * width) & (given.requested_solves < last * width)
            ]
        systems = self._systems(asked, first, last)
        if systems.count:
            self.solver.executor.solve_factored(factors, systems)
            self._take(asked, systems)

    def _systems(self, chosen: Numbers | None, first: int, last: int) -> FactoredSystems:
        """Return systems of the matrices from ``first`` to ``last``; all of them by default."""
        solver, entered, on = self.solver, self.operands, self.solver.executor
        rows = slice(None) if chosen is None else on.from_host(chosen)
        real = real_dtype(entered.b.dtype)
        return FactoredSystems(
            indptr=self.A.indptr,
            indices=self.A.indices,
            values=self.A._values[first:last],
            matrix=None if chosen is None else entered.matrix[chosen] - first,
            width=entered.width,
            b=entered.b[rows],
            x=entered.x[rows],
            tolerances=entered.of_solves(solver.tolerances, chosen),
            least=SAFE_NORMS[real][0],
            most=SAFE_NORMS[real][1],
            least_norm=LEAST_NORM[real],
            refine=solver.refine,
            started=entered.started,
            verdicts=self.verdicts if chosen is None else Verdicts(chosen.size),
        )

    def _take(self, chosen: Numbers | None, systems: FactoredSystems) -> None:
        """Store the verdicts of systems, and their solutions if they are copies."""
        if chosen is not None:
            self.verdicts.take(chosen, systems.verdicts)
            self.operands.x[self.solver.executor.from_host(chosen)] = systems.x

    def _alone(self, s: int, one: _One) -> None:
        """Solve one system by the solver of one matrix."""
        entered, own = self.operands, self.solver.tolerances
        k = s // entered.width
        try:
            solver = one.of(k)
        except InvalidMatrix as error:
            self.fail(s, Stop.UNPREPARED, f"{Stop.UNPREPARED.sentence}: {error}")
            return
        relative, absolute = float(own.relative[k]), float(own.absolute[k])
        solver = solver.with_stop(RelativeResidual(relative) | AbsoluteResidual(absolute))
        try:
            result = solver.solve(entered.b[s], entered.x[s] if entered.started else None)
        except InvalidArgument as error:
            self.fail(s, Stop.NOT_FINITE, f"not finite: {error}")
            return
        self.take(s, result)


def batch_direct(kind: type[Direct], A: Any, **options: Any) -> Any:
    """Return the direct solver for a batch, or for batches of several patterns."""
    if isinstance(A, MixedBatch):
        return MixedSolver(lambda batch, **o: kind(batch, **o), A, **options)
    return BatchDirect(kind, A, **options)
