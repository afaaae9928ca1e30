"""Solve small systems by dense factors: they take less time than an iterative solver's set-up."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import common_dtype
from ...core.formats import Csr, Matrix
from ...core.notes import Note, Topic
from ...core.operands import as_block, like
from ...core.result import AttemptRecord, Result
from ...core.status import Stop
from ...core.stopping import AbsoluteResidual, Norms, RelativeResidual
from ..driver.scaling import column_norms
from .accuracy import about_error
from .candidates import DIRECT
from .costs import factor_constants, rates_of
from .kept import kept_with
from .one_thread import one_thread, threads_of_numpy
from .singular import ShortestSolution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.linop import LinOp

    Numbers = NDArray[Any]

#: Fixed seconds of a dense solve: converting the values and creating the result.
FIXED = 1e-4

#: Upper bound of the rows; MOST_WITH_THREADS applies where LAPACK may use threads, which wait for
#: one another on a busy machine. OpenBLAS uses threads from 100 rows on.
MOST_ROWS, MOST_WITH_THREADS = 256, 99

#: The dtype of the factors for each dtype of a system.
PRECISION = {
    "float32": np.float64,
    "float64": np.float64,
    "complex64": np.complex128,
    "complex128": np.complex128,
}

#: Range of absolute values with squares that neither overflow nor underflow.
SAFE = (1e-140, 1e140)

#: A matrix is regular if its reciprocal condition number exceeds this many unit roundoffs.
REGULAR = 100.0

#: Compute the residual in extended precision if rounding errors in double precision may exceed this
#: fraction of the threshold.
HIDDEN = 0.1

#: The unit roundoff of double precision.
EPS = float(np.finfo(np.float64).eps)

#: The golden ratio: its multiples are evenly distributed modulo one.
GOLDEN = (1 + 5**0.5) / 2

#: The largest number of refinement steps.
STEPS = 2

NOTES = (
    "direct: the matrix is small; dense factors take less time than the set-up of iterations",
    "direct: LAPACK in NumPy, on the host",
)


SHORTEST = Note(
    "x is the shortest solution: singular values of a dense matrix, by LAPACK in NumPy",
    Topic.SHORTEST,
)


def is_small(A: LinOp) -> bool:
    """Return whether dense factors are expected to take less time than a call of a solver."""
    rows = int(A.shape[0])
    if not 0 < rows <= MOST_ROWS:  # before constants are read
        return False
    most = MOST_WITH_THREADS if threads_of_numpy() is None else MOST_ROWS
    seconds = FIXED + factor_constants().dense_operation * 2 / 3 * float(rows) ** 3
    return rows <= most and seconds <= rates_of(A).call


class SmallMatrix:
    """A small dense matrix in double precision on the host, for LAPACK.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix.

    Attributes
    ----------
    is_regular : bool
        Whether the values are finite and of moderate size, and the matrix is not singular to
        working precision.
    unit : float
        The unit roundoff of the entries' dtype.
    exponent : int
        Exponent of the power of two by which the entries are scaled: 0 if their squares are in
        range.
    size, condition : float
        The 1-norm, and a lower bound of the condition number in this norm, which is infinite before
        the first solve.

    Notes
    -----
    LAPACK comes with NumPy: SciPy is not loaded for a small solve.

    References
    ----------
    E. Anderson et al., LAPACK Users' Guide, 3rd ed., SIAM 1999: gesv. N. J. Higham, Accuracy and
    Stability of Numerical Algorithms, 2nd ed., SIAM 2002, section 15.3, for the vector of
    alternating signs in the estimate of the condition number.
    """

    def __init__(self, A: Matrix) -> None:
        self.condition = np.inf
        self.unit = float(np.finfo(A.dtype).eps)
        self._matrix, self.size = _stored(A)
        self.exponent = 0
        if not SAFE[0] < self.size < SAFE[1] and 0 < self.size < np.inf:
            self.exponent = -int(np.frexp(self.size)[1])
            self._matrix = _times_power(self._matrix, self.exponent)
            self.size = float(np.ldexp(self.size, self.exponent))
        self.is_regular = SAFE[0] < self.size < SAFE[1]  # false for NaN

    def solve(self, b: Numbers, threshold: Numbers, dtype: Any) -> tuple[Numbers, Numbers] | None:
        """Return a solution and the residual norms of its columns; None for a singular matrix.

        Parameters
        ----------
        b : array, shape (n, k)
            Right-hand sides in double precision.
        threshold : array, shape (k,)
            Refinement ends when the residual norms do not exceed these values.
        dtype : dtype
            Of the solution.
        """
        k = b.shape[1]
        try:
            x = self._estimated(b) if np.isinf(self.condition) else self._applied(b)
            if not self.is_regular:
                return None
            for step in range(STEPS + 1):
                rounded = x.astype(dtype)
                residual = self._residual(b, rounded, threshold)
                norm: Numbers = np.sqrt(np.sum(np.abs(residual) ** 2, axis=0)).reshape(k)
                if step == STEPS or not np.all(np.isfinite(norm)) or np.all(norm <= threshold):
                    break
                x = x + self._applied(residual)
        except np.linalg.LinAlgError:  # a pivot is zero
            self.is_regular = False
            return None
        return rounded, norm

    def _residual(self, b: Numbers, x: Numbers, threshold: Numbers) -> Numbers:
        """Return ``b - A x``, in extended precision if rounding errors could be significant."""
        lengths = np.sqrt(np.sum(np.abs(x) ** 2, axis=0))
        rounding = EPS * np.sqrt(x.shape[0]) * self.size * lengths
        if not np.any(rounding > HIDDEN * threshold):
            return b - self._matrix @ x
        wide = np.clongdouble if np.iscomplexobj(b) or np.iscomplexobj(x) else np.longdouble
        if np.iscomplexobj(self._matrix):
            wide = np.clongdouble
        residual: Numbers = b.astype(wide) - self._matrix.astype(wide) @ x.astype(wide)
        return residual.astype(np.result_type(self._matrix, b, x))

    @property
    def is_regular_to_precision(self) -> bool:
        """Whether every matrix that rounds to the same entries is regular."""
        return self.is_regular and not (self.unit > EPS and self.condition * self.unit > 1)

    def _estimated(self, b: Numbers) -> Numbers:
        """Return the solution, and estimate the condition number with more right-hand sides."""
        n, k = b.shape
        probes = np.ones((n, 3))
        place = np.arange(n, dtype=np.float64)
        probes[:, 1] += place / max(n - 1, 1)
        probes[1::2, 1] *= -1
        probes[GOLDEN * place**2 % 1 < 0.5, 2] = -1  # pseudorandom signs
        x = self._applied(np.concatenate([b, probes], axis=1))
        inverse = np.abs(x[:, k:]).sum(axis=0) / np.abs(probes).sum(axis=0)
        self.condition = float(max(np.max(inverse) * self.size, 1.0))
        self.is_regular = bool(self.condition * REGULAR * EPS < 1)
        return np.ascontiguousarray(x[:, :k])

    def shortest(self, b: Numbers, dtype: Any) -> ShortestSolution | None:
        """Return the shortest least squares solution of a singular matrix.

        Returns
        -------
        ShortestSolution or None
            None if the rank changes when rows and columns are scaled: the matrix may be regular.
        """
        n = self._matrix.shape[0]
        sizes = np.abs(self._matrix)
        rows = sizes.max(axis=1)
        rows[rows == 0] = 1
        columns = (sizes / rows[:, None]).max(axis=0)
        columns[columns == 0] = 1
        values = np.linalg.svd(self._matrix / rows[:, None] / columns, compute_uv=False)
        scaled = int(np.sum(values > n * self.unit * values[0]))
        x, _, rank, _ = np.linalg.lstsq(self._matrix, b, rcond=n * self.unit)
        if scaled != rank or rank == n:
            return None
        rounded = x.astype(dtype)
        residual = b - self._matrix @ rounded
        return ShortestSolution(rounded, np.linalg.norm(residual, axis=0), int(rank))

    def error(self, x: Numbers, residual_norm: Numbers) -> float:
        """Return the estimated relative error of the worst column of a solution."""
        length = column_norms(x)
        known = length > 0
        backward = residual_norm[known] / (self.size * length[known])
        eps = float(np.finfo(x.dtype).eps)
        return min(self.condition * max(float(np.max(backward, initial=0.0)), eps), 1.0)

    def _applied(self, b: Numbers) -> Numbers:
        solution: Numbers = np.linalg.solve(self._matrix, b)
        return solution


def _times_power(numbers: Numbers, exponents: int | Numbers) -> Numbers:
    """Return numbers times powers of two, also powers out of the range of a single factor."""
    if not np.iscomplexobj(numbers):
        return np.ldexp(numbers, exponents)
    scaled = np.empty_like(numbers)
    scaled.real, scaled.imag = (np.ldexp(part, exponents) for part in (numbers.real, numbers.imag))
    return scaled


def _stored(A: Matrix) -> tuple[Numbers, float]:
    """Return a matrix as a dense array, and its 1-norm."""
    rows: Csr = A.T if A.format == "csc" else A.asformat("csr")
    indptr, indices, data = (
        np.asarray(a) for a in A.executor.transfer(rows.indptr, rows.indices, rows.data).read()
    )
    n = A.shape[0]
    lines = np.repeat(np.arange(n), np.diff(indptr))
    places = n * lines + indices.astype(np.intp)
    if A.format == "csc":
        places = lines + n * indices.astype(np.intp)
    flat: Numbers = np.zeros(n * n, PRECISION[data.dtype.name])
    np.add.at(flat, places, data)
    columns = lines if A.format == "csc" else indices
    sums = np.bincount(columns, np.abs(data), n)
    return flat.reshape(n, n), float(sums.max())


@dataclass(frozen=True)
class _System:
    """A small system in double precision on the host.

    Attributes
    ----------
    matrix : SmallMatrix
        The matrix.
    b : array, shape (n, k)
        The right-hand sides.
    norm_b, threshold : array, shape (k,)
        The norms of ``b``, and the residual norms to reach, for each column.
    dtype : dtype
        Of the solution.
    exponents : array of int, shape (k,)
        Exponents of the powers of two by which the columns of ``b``, ``norm_b`` and ``threshold``
        are scaled.
    """

    matrix: SmallMatrix
    b: Numbers
    norm_b: Numbers
    threshold: Numbers
    dtype: Any
    exponents: Numbers

    def overflowing(self, x: Numbers) -> NDArray[np.bool_]:
        """Return which columns of a solution of the scaled system are too large for the dtype."""
        with np.errstate(all="ignore"):
            unscaled = _times_power(x, self.matrix.exponent - self.exponents)
        return np.logical_not(np.isfinite(unscaled).all(axis=0))

    def unscaled(self, x: Numbers) -> Numbers | None:
        """Return the solution without the scaling; None if its digits leave the dtype's range."""
        powers = self.matrix.exponent - self.exponents
        if not powers.any():
            return x
        with np.errstate(all="ignore"):
            result = _times_power(x, powers)
            is_exact = np.array_equal(_times_power(result, -powers), x)
        return result if is_exact else None


def _system(A: LinOp, b: Any, rtol: float, atol: float) -> _System | None:
    """Return a small system as dense arrays; None if its values cannot be scaled into range."""
    if not isinstance(A, Matrix) or A.partition is not None:
        return None
    if A.dtype.name not in PRECISION:
        return None
    native = as_block(A.executor, b, A.shape[0], "b")
    if native.dtype.name not in PRECISION:
        return None
    dtype = common_dtype(A.dtype, native.dtype)
    block: Numbers = np.asarray(A.executor.to_host(native)).astype(PRECISION[dtype.name])
    with np.errstate(all="ignore"):
        norm_b = np.linalg.norm(block, axis=0)
    stop = RelativeResidual(rtol) | AbsoluteResidual(atol)  # raises for a bad tolerance
    exponents = np.zeros(norm_b.size, np.int64)
    moderate = (norm_b > SAFE[0]) & (norm_b < SAFE[1])
    if not np.all(moderate | ~block.any(axis=0)):
        largest = np.abs(block).max(axis=0, initial=0.0)
        if not np.all(np.isfinite(largest)):
            return None
        exponents[~moderate] = -np.frexp(largest[~moderate])[1]
        block = _times_power(block, exponents)
        norm_b = np.linalg.norm(block, axis=0)
        with np.errstate(over="ignore"):
            threshold = np.maximum(rtol * norm_b, np.ldexp(np.float64(atol), exponents))
    else:
        limits = stop.limits(Norms(norm_b, lambda: norm_b)).threshold
        assert limits is not None
        threshold = limits
    cache = kept_with(A)
    if cache.small is None:
        cache.small = SmallMatrix(A)
    return _System(cache.small, block, norm_b, threshold, dtype, exponents)


def solve_small(A: LinOp, b: Any, rtol: float, atol: float) -> Result | None:
    """Solve a small system by dense factors.

    Parameters
    ----------
    A : LinOp, shape (n, n)
        The operator; only the entries of a matrix of wollemi can be factorized.
    b : array, shape (n,) or (n, k)
        Right-hand sides.
    rtol, atol : float
        The tolerance.

    Returns
    -------
    Result or None
        Columns of which the solution overflows the dtype are zero and out of range: no method has a
        number for them. None if the system is not small or not regular, or if the tolerance is not
        met: other methods have to solve it.
    """
    began = time.perf_counter()
    system = _system(A, b, rtol, atol)
    if system is None or not system.matrix.is_regular:
        return None
    setup = time.perf_counter() - began
    small = system.matrix
    with np.errstate(all="ignore"), one_thread():
        solution = small.solve(system.b, system.threshold, system.dtype)
    if solution is None:
        return None
    x, norm = solution
    lost = system.overflowing(x)
    if not np.all((norm <= system.threshold) | lost):
        return None
    if not small.is_regular_to_precision:
        singular = shortest_of_small(A, b, rtol, atol)
        if singular is not None:
            return singular
        if lost.any():
            return None
    error = small.error(x[:, ~lost], norm[~lost])
    tried = AttemptRecord(DIRECT, "dense", setup, 1, 0.0, "")
    result = _result(A, b, system, x, norm, tried, began, lost)
    if result is None:
        return None
    notes = [*NOTES, *about_error(error, small.condition)]
    return replace(result, notes=notes, condition=small.condition, error=error)


def shortest_of_small(A: LinOp, b: Any, rtol: float, atol: float) -> Result | None:
    """Return the shortest solution of a small singular system, by singular values.

    The parameters are as in :func:`solve_small`.

    Returns
    -------
    Result or None
        None if the system is not small, the matrix is not singular, or ``b`` is not in its range:
        other methods have to solve it.
    """
    began = time.perf_counter()
    system = _system(A, b, rtol, atol)
    usable = system is not None and SAFE[0] < system.matrix.size < SAFE[1]
    if system is None or not usable or system.matrix.is_regular_to_precision:
        return None
    try:
        with np.errstate(all="ignore"), one_thread():
            solution = system.matrix.shortest(system.b, system.dtype)
    except np.linalg.LinAlgError:  # the singular values do not converge
        return None
    if solution is None or not np.all(solution.residual_norm <= system.threshold):
        return None
    tried = AttemptRecord(DIRECT, "svd", 0.0, 1, 0.0, "")
    result = _result(A, b, system, solution.x, solution.residual_norm, tried, began)
    if result is None:
        return None
    about = (
        f"direct: the matrix is singular to working precision, of rank {solution.rank} of "
        f"{A.shape[0]}"
    )
    return replace(result, notes=[about, SHORTEST])


def _result(
    A: LinOp,
    b: Any,
    system: _System,
    x: Numbers,
    norm: Numbers,
    tried: AttemptRecord,
    began: float,
    lost: NDArray[np.bool_] | None = None,
) -> Result | None:
    """Return the result of a solve by dense arrays; None if ``x`` loses digits.

    All columns have converged but the ``lost`` ones, which overflow.
    """
    fails = np.zeros(norm.size, bool) if lost is None else lost
    x, norm = np.where(fails, 0, x), np.where(fails, system.norm_b, norm)
    solution = system.unscaled(x)
    if solution is None:
        return None
    norm, norm_b, threshold = (
        np.ldexp(each, -system.exponents) if system.exponents.any() else each
        for each in (norm, system.norm_b, system.threshold)
    )
    one, k = np.ndim(b) == 1, system.b.shape[1]
    seconds = time.perf_counter() - began
    history = np.stack([norm_b, norm])
    attempt = replace(tried, seconds=seconds - tried.setup_seconds, reason="converged")
    if fails.any():
        attempt = replace(attempt, reason="out of range")
    return Result(
        x=like(A.executor, A.executor.from_host(np.ascontiguousarray(solution)), b),
        stops=[Stop.OUT_OF_RANGE if fail else Stop.CONVERGED for fail in fails],
        column_iterations=np.ones(k, np.int64),
        residual_norm=float(norm[0]) if one else norm,
        residuals=history[:, 0] if one else history,
        threshold=float(threshold[0]) if one else threshold,
        norm_of_b=float(norm_b[0]) if one else norm_b,
        M=attempt.M,
        seconds=seconds,
        solver="Direct",
        executor=A.executor.name,
        attempts=[attempt],
    )
