"""The direct solver: factorize the matrix, and refine until the true residual is small."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from ...core.dtypes import common_dtype, real_dtype
from ...core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from ...core.factors import whole_number
from ...core.formats import Csr, Matrix
from ...core.formats.entries import with_entries
from ...core.linop import LinOp
from ...core.operands import as_block, like
from ...core.operations import vector
from ...core.operator_conversions import as_linop
from ...core.registry import executor as executor_by_name
from ...core.result import Result
from ...core.settings import Configurable, Settings, settings_of
from ...core.setup_time import sets_up, setup_seconds
from ...core.small_values import as_dtype, values_times
from ...core.status import Stop
from ...core.stopping import AbsoluteResidual, Criterion, Norms, RelativeResidual
from ..driver.constants import why_unsolved
from ..driver.residual import ResidualOfWorkspace
from ..driver.scaling import (
    Numbers,
    RightHandSides,
    column,
    exponents_of,
    indices,
    largest_values,
    norms,
    scale_columns,
    scale_for,
    scaled_back,
    times,
)
from ..driver.unrecorded import Unrecorded
from .engine import Engine, EngineFactors, LogDeterminant, NoRows, chosen_engine
from .structural_rank import require_structural_rank

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

#: Continue refinement only if a step reduced the residual at least to this fraction.
PROGRESS = 0.5

#: A version of values that is before every other one.
OLDER = -1

#: The reason of a failure with factors of earlier values.
STALE = (
    "stagnated: A has new values and the factors are those of the old ones: call solver.update() "
    "after A.update_values(...)"
)


class Direct(Unrecorded, LinOp, metaclass=Configurable):
    """A direct solver: one analysis of the pattern, one factorization, any number of solves.

    Parameters
    ----------
    A : matrix, shape (n, n)
        A matrix of any format; 16-bit values are not supported.
    engine : str
        ``"superlu"`` (from SciPy, on the host, always available) or the name of an engine of
        another package; ``"auto"`` selects the engine of the executor's device, or SuperLU.
    ordering : str, optional
        The engine's name for the ordering.
    refine : int
        Upper bound of the iterative refinement steps. Another step follows only if the last one
        halved the true residual.
    rtol, atol : float
        The tolerance of the verdict: ``norm(b - A x) <= max(rtol * norm(b), atol)``, per column.
    executor : Executor or str, optional
        The executor to which ``A`` is moved if it has none.

    Attributes
    ----------
    factors_nnz : int
        Number of entries of the factors.
    notes : list of str
        Engine, ordering and fill-in, and the executor that does the work.

    Raises
    ------
    InvalidMatrix
        If the matrix is singular to working precision, or has values that are not finite.

    Notes
    -----
    As an operator, ``solver @ b`` or ``M=solver``, it applies the factors without refinement
    or verdict.

    References
    ----------
    T. A. Davis, Direct Methods for Sparse Linear Systems, SIAM 2006; N. J. Higham, Accuracy and
    Stability of Numerical Algorithms, 2nd ed., SIAM 2002, chapter 12, for the refinement.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> solver = wl.solvers.Direct(wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]])))
    >>> result = solver.solve(np.array([1.0, 2.0]))
    >>> np.round(10 * result.x, 6), result.converged
    (array([1., 6.]), True)
    >>> round(float(np.exp(solver.log_determinant().logarithm)), 6)
    10.0
    """

    #: The key of a solver in dictionaries of settings.
    ROLE: ClassVar[str] = "solver"

    _options: dict[str, Any]
    _transposed = "N"
    _many = False

    def __init__(
        self,
        A: Any,
        *,
        engine: str = "auto",
        ordering: str | None = None,
        refine: int = 2,
        rtol: float = 1e-5,
        atol: float = 0.0,
        executor: Executor | str | None = None,
    ) -> None:
        self.stop: Criterion = RelativeResidual(rtol) | AbsoluteResidual(atol)
        self.refine = whole_number(refine, "refine")
        matrix = self._checked(as_linop(A, executor))
        self.executor, self.shape, self.dtype = matrix.executor, matrix.shape, matrix.dtype
        self._engine: Engine = chosen_engine(engine, self.executor)(ordering)
        self._engine.many = self._many
        at = self._at_engine(matrix)
        if self.shape[0]:
            require_structural_rank(at)
            self._engine.analyse(at)
        scale = scale_for(matrix)
        self._take(matrix, self._factorized(at, scale), scale)

    @classmethod
    def of_batch(cls, A: Any, **options: Any) -> Any:
        """Return a direct solver for every matrix of a batch, as ``Direct(A)`` does."""
        from ..batch.direct import batch_direct

        return batch_direct(cls, A, **options)

    @classmethod
    def _of_members(cls, A: LinOp, **options: Any) -> Self:
        """Return the solver for one matrix of a batch; updates solve the others."""
        made = cls.__new__(cls)
        made._options, made._many = options, True
        cls.__init__(made, A, **options)
        return made

    @property
    def _is_stale(self) -> bool:
        """Whether the matrix has got values after the factors were computed."""
        return self._version != self.A._values_version

    @property
    def _follows_exactly(self) -> bool:
        """Whether factors after an update are bitwise equal to factors of a new solver."""
        return self._engine.follows_exactly

    def _checked(self, A: LinOp) -> Matrix:
        matrix = with_entries(A, "Direct")
        if A.shape[0] != A.shape[1]:
            raise ShapeMismatch(f"Direct needs a square matrix, got {A.shape[0]}x{A.shape[1]}")
        return matrix

    def _at_engine(self, matrix: Matrix) -> Csr:
        """Return the matrix on the engine's executor."""
        place = self._engine.place(self.executor)
        made: Csr = matrix.asformat("csr").to(place)
        if not bool(place.xp.isfinite(made.data).all()):
            raise InvalidMatrix("Direct: the matrix has NaN or Inf: there is no factorization")
        return made

    def _factorized(self, A: Csr, scale: float) -> EngineFactors:
        if not self.shape[0]:
            return NoRows()
        if scale != 1.0:
            A = A._with_data(values_times(A.executor, A.data, scale))
        return self._engine.factorize(A)

    def _take(self, matrix: Matrix, factors: EngineFactors, scale: float) -> None:
        self.A, self._factors, self._scale = matrix, factors, scale
        matrix._follow_writes()
        self._version = matrix._values_version
        self.factors_nnz = factors.nnz
        fill = factors.nnz / max(matrix.nnz, 1)
        self.notes = [
            f"direct: {self._engine.library}, {factors.nnz} entries in the factors, {fill:.1f} "
            "times the entries of the matrix",
            *factors.notes,
        ]
        if not self._engine.stays_on(self.executor) and not isinstance(matrix.data, np.ndarray):
            self.notes.append(
                f"direct: {self._engine.name} works on the host: vectors travel from "
                f"{self.executor.name} and back"
            )

    def _note_later_factors(self) -> None:
        """Add the notes on factors that the engine computed on first use."""
        self.notes += [note for note in self._factors.notes if note not in self.notes]

    # methods for users

    @property
    def settings(self) -> Settings:
        """The class and the options of this solver, without the matrix."""
        return settings_of(self)

    @sets_up
    def update(self, A: Any = None) -> None:
        """Factorize again for new values with the same pattern, without another analysis.

        Parameters
        ----------
        A : matrix, optional
            The new matrix; by default, the current one with changed values.

        Raises
        ------
        ShapeMismatch, InvalidMatrix
            If the matrix does not match or is singular; the solver is not changed then.
        """
        matrix = self.A if A is None else self._checked(as_linop(A, self.executor))
        if matrix.shape != self.shape:
            raise ShapeMismatch(
                f"Direct.update: expected a matrix of {self.shape[0]}x{self.shape[1]}, got "
                f"{matrix.shape[0]}x{matrix.shape[1]}"
            )
        matrix = matrix.to(self.executor).astype(self.dtype)
        scale = scale_for(matrix)
        self._take(matrix, self._factorized(self._at_engine(matrix), scale), scale)

    def with_stop(self, stop: Criterion) -> Self:
        """Return a solver with the same factors and another criterion for its verdict."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.stop = stop
        return made

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant of the matrix as NumPy's ``slogdet`` does.

        Raises
        ------
        UnsupportedOperation
            If the engine does not compute it.
        InvalidMatrix
            If another engine computes the factors, and finds that the matrix is singular.
        """
        found = self._factors.log_determinant()
        self._note_later_factors()
        if self._scale != 1.0:
            logarithm = found.logarithm - self.shape[0] * float(np.log(self._scale))
            found = LogDeterminant(found.sign, logarithm)
        if self._transposed == "H":
            return LogDeterminant(np.conj(found.sign), found.logarithm)
        return found

    def inertia(self) -> tuple[int, int, int]:
        """Return the numbers of positive, negative and zero eigenvalues of a Hermitian matrix.

        Raises
        ------
        UnsupportedOperation
            If the engine does not compute it, as SuperLU.
        """
        return self._factors.inertia()

    def solve(self, b: Any, x0: Any = None) -> Result:
        """Solve ``A x = b`` and refine the solution.

        Parameters
        ----------
        b : array, shape (n,) or (n, k)
            Right-hand sides.
        x0 : array of the shape of b, optional
            Initial guess of the refinement; without it, the factors are applied to ``b``.

        Returns
        -------
        Result
            The solution with its verdict. Its iterations count applications of the factors.

        Raises
        ------
        ShapeMismatch, InvalidArgument
            If ``b`` or ``x0`` do not match the matrix, or are not finite.
        """
        began = time.perf_counter()
        self.A._follow_writes()
        block = as_block(self.executor, b, self.shape[0], "b")
        dtype = common_dtype(self.dtype, block.dtype)
        block = as_dtype(self.executor, block, dtype)
        operator = self.A.astype(dtype)
        sides = RightHandSides(self.executor, block, operator_scale=self._scale)
        rows, columns = block.shape
        residual = ResidualOfWorkspace(times(self._scale, operator), rows, rows, columns)
        start = self._start(x0, sides)
        x, history, error = self._refined(residual, sides, start)
        limits = self.stop.limits(Norms(sides.norm, lambda: history[0], sides.scale))
        assert limits.threshold is not None
        solution, changed = scaled_back(self.executor, x, sides.solution_exponents)
        norms_found = history[-1].copy()
        stops = _verdicts(norms_found + residual.rounding(x), limits.threshold)
        if changed:
            # the returned solution is judged again
            again = self.executor.copy(solution)
            scale_columns(self.executor, again, sides.solution_exponents)
            found = self._residual_norms(residual, sides, again)[1]
            found[~np.isfinite(largest_values(self.executor, solution))] = np.inf
            given, lost = scaled_back(self.executor, start, sides.solution_exponents)
            for c in changed:
                if stops[c] == Stop.CONVERGED and not found[c] <= limits.threshold[c]:
                    stops[c] = Stop.OUT_OF_RANGE
                norms_found[c] = found[c]
                before = sides.norm[c] if c in lost else history[0][c]
                if stops[c] != Stop.CONVERGED and not found[c] <= before:  # the start is better
                    kept = 0.0 if c in lost else 1.0
                    self.executor.run(
                        vector.axpby, column(given, c), column(solution, c), kept, 0.0
                    )
                    norms_found[c] = before
        history = [sides.in_units_of_b(one) for one in [*history[:-1], norms_found]]
        last, thresholds, sizes = (
            history[-1], sides.in_units_of_b(limits.threshold), sides.in_units_of_b(sides.norm)
        )  # fmt: skip
        one = np.ndim(b) == 1
        self._note_later_factors()
        return Result(
            x=like(self.executor, solution, b),
            stops=stops,
            column_iterations=np.full(block.shape[1], len(history) - 1, np.int64),
            residual_norm=float(last[0]) if one else last,
            residuals=np.array(history)[:, 0] if one else np.array(history),
            threshold=float(thresholds[0]) if one else thresholds,
            norm_of_b=float(sizes[0]) if one else sizes,
            seconds=time.perf_counter() - began,
            solver=type(self).__name__,
            executor=self.executor.name,
            notes=list(self.notes),
            error=error,
            setup_before=setup_seconds(self),
            explained=self._explained(stops, b),
        )

    def _explained(self, stops: list[Stop], b: Any) -> dict[Stop, str]:
        """Return explanations of failures: old factors, or constants in the null space of A."""
        failed = {Stop.STAGNATED, Stop.NOT_FINITE}.intersection(stops)
        if failed and self._is_stale:
            return dict.fromkeys(failed, STALE)
        if not failed or self.A.partition is not None:
            return {}

        def block() -> Numbers:
            return np.asarray(self.executor.to_host(as_block(self.executor, b, self.shape[0], "b")))

        why = why_unsolved(block, lambda _, test: test(self.A))
        return {} if why is None else {s: f"{s.sentence.partition(':')[0]}: {why}" for s in failed}

    def _start(self, x0: Any, sides: RightHandSides) -> Array:
        """Return the initial guess of the refinement, in the units of the scaled system."""
        block = sides.block
        x = self.executor.zeros(block.shape, block.dtype)
        if x0 is not None:
            start = as_block(self.executor, x0, self.shape[0], "x0")
            if start.shape != block.shape:
                raise ShapeMismatch(f"x0 has shape {tuple(start.shape)}, b {tuple(block.shape)}")
            self.executor.run(
                vector.axpby, as_dtype(self.executor, start, block.dtype), x, 1.0, 0.0
            )
            if not np.all(np.isfinite(largest_values(self.executor, x))):
                raise InvalidArgument("x0 has NaN or Inf; start from finite values")
            scale_columns(self.executor, x, sides.solution_exponents)
        return x

    def _residual_norms(
        self, residual: ResidualOfWorkspace, sides: RightHandSides, x: Array
    ) -> tuple[Array, Numbers]:
        """Return the residuals of the columns of ``x``, and their norms."""
        made = self.executor.copy(sides.block)
        residual.make(x, made)
        return made, norms(self.executor, made)

    def _refined(
        self, residual: ResidualOfWorkspace, sides: RightHandSides, x: Array
    ) -> tuple[Array, list[Numbers], float | None]:
        """Return the best solution of each column, the norms of the residuals, and the error.

        The next refinement step estimates the relative error of a solution; None without a next
        step.
        """
        r, before = self._residual_norms(residual, sides, x)
        long = indices(~(before <= sides.norm / np.finfo(real_dtype(x.dtype)).eps))
        if long:  # its residual would have no digit of b
            for c in long:
                self.executor.run(vector.fill, column(x, c), 0.0)
            r, before = self._residual_norms(residual, sides, x)
        history, error = [before], None
        for place in range(1 + self.refine):
            better, step = self.executor.copy(x), self._with_factors(r)
            self.executor.run(vector.axpby, step, better, 1.0, 1.0)
            if place:
                error = self._size_of_step(step, x)
            found, norm = self._residual_norms(residual, sides, better)
            kept = norm <= before
            falls = bool(np.any(norm < PROGRESS * before)) and bool(np.any(norm))
            if not place and self.refine and not falls and np.all(np.isfinite(norm)) and norm.any():
                # rows of very different size: the next step removes the errors of the large ones
                twice, rest, smaller, size = self._further(residual, sides, better, found)
                if np.any(smaller < norm) and np.any(smaller < before):
                    better, found, norm, error = twice, rest, smaller, size
                    kept, falls = norm <= before, True
            if not kept.any():  # after a solution that is exact to rounding, for example
                break
            for c in indices(~kept):
                for old, new in ((x, better), (r, found)):
                    self.executor.run(vector.axpby, column(old, c), column(new, c), 1.0, 0.0)
            norm = np.where(kept, norm, before)
            x, r, before = better, found, norm
            history.append(norm)
            if not falls:
                break
        return x, history, error

    def _further(
        self, residual: ResidualOfWorkspace, sides: RightHandSides, x: Array, r: Array
    ) -> tuple[Array, Array, Numbers, float | None]:
        """Return a solution after a refinement step, its residual, their norms, and the error."""
        better, step = self.executor.copy(x), self._with_factors(r)
        self.executor.run(vector.axpby, step, better, 1.0, 1.0)
        return better, *self._residual_norms(residual, sides, better), self._size_of_step(step, x)

    def _size_of_step(self, step: Array, x: Array) -> float | None:
        """Return the largest ratio of maximum norms of step and solution, over all columns."""
        sizes, of_x = (largest_values(self.executor, block) for block in (step, x))
        known = (of_x > 0) & np.isfinite(of_x) & np.isfinite(sizes)
        return float(np.max(sizes[known] / of_x[known])) if known.any() else None

    def _solved(self, b: Array) -> Array:
        """Apply the inverse of the matrix to a native block; return a native block."""
        solved = self._with_factors(b)
        if self._scale != 1.0:
            exponent = exponents_of(np.full(int(b.shape[1]), self._scale))
            scale_columns(self.executor, solved, exponent)
        return solved

    def _with_factors(self, b: Array) -> Array:
        """Apply the factors of the scaled matrix to a native block."""
        engine = self._engine.place(self.executor)
        stays = engine == self.executor
        at_engine = engine.brought(self.executor, b)
        if at_engine.dtype != self.dtype and at_engine.dtype.kind == "c" and self.dtype.kind != "c":
            parts = (at_engine.real, at_engine.imag)
            real, imaginary = (self._factors.solve(p, self._transposed) for p in parts)
            solved = real + 1j * imaginary
        else:
            solved = self._factors.solve(as_dtype(engine, at_engine, self.dtype), self._transposed)
        if stays:
            return engine.xp.ascontiguousarray(as_dtype(engine, solved, b.dtype))
        return self.executor.from_host(
            np.ascontiguousarray(engine.to_host(solved).astype(b.dtype, copy=False))
        )

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(vector.axpby, self._solved(x), y, alpha, beta)

    # ---- as an operator

    @property
    def resident(self) -> bool:
        """False: a library does the work, which cannot be recorded."""
        return False

    def _turned(self, which: str, A: LinOp) -> Self:
        if self._transposed not in ("N", which):
            # the transpose of the adjoint is the conjugate, with which engines do not solve
            return type(self)(A, **self._options)
        made = type(self).__new__(
            type(self)
        )  # not a copy, which would factorize as unpickling does
        made.__dict__.update(self.__dict__)
        made.A, made._transposed = cast(Matrix, A), which if self._transposed == "N" else "N"
        made._version = OLDER if self._is_stale else made.A._values_version
        return made

    @property
    def T(self) -> Self:
        """The solver of the transpose, with the same factors."""
        return self._turned("T", self.A.T)

    @property
    def H(self) -> Self:
        """The solver of the conjugate transpose, with the same factors."""
        return self._turned("H" if self.dtype.kind == "c" else "T", self.A.H)

    def to(self, executor: Executor | str) -> Self:
        """Return this solver on another executor; itself if it is there already."""
        where = executor_by_name(executor)
        if where == self.executor:
            return self
        return type(self)(self.A.to(where), **self._options)

    def astype(self, dtype: Any) -> Self:
        """Return this solver with factors of ``dtype``; itself if it has them already."""
        if np.dtype(dtype) == self.dtype:
            return self
        return type(self)(self.A.astype(dtype), **self._options)

    def __getstate__(self) -> dict[str, Any]:
        return {"A": self.A, "options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(type(self)(state["A"], **state["options"]).__dict__)


def _verdicts(norm: Numbers, threshold: Numbers) -> list[Stop]:
    """Return the verdict on each column from its residual norm."""
    failed = [Stop.STAGNATED if np.isfinite(one) else Stop.NOT_FINITE for one in norm]
    met = norm <= threshold
    return [Stop.CONVERGED if fits else why for fits, why in zip(met, failed, strict=True)]
