"""The shortest least squares solution of a system with a singular or rectangular matrix."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formats import Csr, Matrix
from ...core.operands import as_block, like
from ...core.result import Result
from ...core.status import Stop
from ..driver.scaling import column_norms, norms
from ..least_squares.lsmr import Lsmr
from .costs import rates_of
from .one_thread import one_thread, threads_of_scipy
from .singular import ShortestSolution, is_orthogonal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

#: The tolerance of LSMR is TOLERANCE_PART times the tolerance of the system, limited to
#: [LEAST_TOLERANCE, LARGEST_TOLERANCE].
TOLERANCE_PART, LEAST_TOLERANCE, LARGEST_TOLERANCE = 1e-3, 1e-12, 1e-8

#: Iteration limit of LSMR: ITERATIONS_PER_UNKNOWN times the unknowns, at most MOST_ITERATIONS. A
#: time limit, such as the time of dense factors, lowers this limit, but not below LEAST_ITERATIONS.
ITERATIONS_PER_UNKNOWN, MOST_ITERATIONS, LEAST_ITERATIONS = 20, 5000, 300

#: If iterations do not converge, compute dense orthogonal factors of matrices with
#: ``m n min(m, n)`` up to DENSE_WORK, which is a square matrix of 2000 rows. DENSE_SECONDS is the
#: estimated time for each unit of this product.
DENSE_WORK, DENSE_SECONDS = 8.1e9, 4e-10

#: The component of a column that is orthogonal to the other columns counts as zero below this many
#: unit roundoffs, times the square root of the larger dimension.
ROUNDOFFS_OF_RANK = 10.0

#: Compute the factors of matrices of at most this many rows and columns in one thread.
FOR_ONE_THREAD = 1000

#: A solution has left the range of its dtype if rounding it to the dtype causes a larger relative
#: difference.
LARGEST_ROUNDING = 1e-3

#: Matrix products in an iteration of LSMR.
PRODUCTS_PER_ITERATION = 3.0


def shortest(
    A: Matrix, b: Any, x0: Any, rtol: float, atol: float, seconds: float | None = None
) -> Result:
    """Minimize ``|A x - b|`` by LSMR, which finds the shortest solution from a zero guess.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix.
    b, x0 : array, shape (n,) or (n, k)
        Right-hand sides, and the initial guess; None for zero.
    rtol, atol : float
        The tolerance of the system.
    seconds : float, optional
        Approximate time limit.

    Returns
    -------
    Result
        A column has converged if its residual meets the tolerance of the system; it ends as *least
        squares* if the residual is larger and orthogonal to every column of ``A``. If LSMR does not
        end so, dense orthogonal factors solve systems of up to 2000 rows.
    """
    tolerance = float(np.clip(TOLERANCE_PART * rtol, LEAST_TOLERANCE, LARGEST_TOLERANCE))
    most = min(ITERATIONS_PER_UNKNOWN * A.shape[0], MOST_ITERATIONS)
    densely = x0 is None and fits_densely(A, seconds)
    limit = _dense_seconds(A) if densely else seconds
    if limit is not None:
        most = min(most, max(int(limit / _per_iteration(A)), LEAST_ITERATIONS))
    solver: Any = Lsmr(A, atol=tolerance, btol=min(rtol, tolerance), conlim=0.0, maxiter=most)
    found = solver.solve(b, x0)
    size = norms(A.executor, as_block(A.executor, b, A.shape[0], "b"))
    threshold = np.maximum(rtol * size, atol)
    norm = np.atleast_1d(found.residual_norm)
    stops = [
        Stop.CONVERGED if n <= t else Stop.LEAST_SQUARES if s == Stop.CONVERGED else s
        for n, t, s in zip(norm, threshold, found.stops, strict=True)
    ]
    if Stop.LEAST_SQUARES in stops:
        stops = _proved(stops, A, _on_host(A, b, "b"), _on_host(A, found.x, "x"))
    one = np.ndim(b) == 1
    result = Result(
        x=found.x,
        stops=stops,
        column_iterations=found.column_iterations,
        residual_norm=found.residual_norm,
        residuals=found.residuals,
        threshold=float(threshold[0]) if one else threshold,
        norm_of_b=found.norm_of_b,
        is_shortest=x0 is None,
        seconds=found.seconds,
        solver=found.solver,
        executor=found.executor,
    )
    ended = all(stop in (Stop.CONVERGED, Stop.LEAST_SQUARES) for stop in stops)
    if ended or not densely:
        return result
    return _by_factors(A, b, result, threshold)


def _on_host(A: Matrix, block: Any, name: str) -> Numbers:
    """Return a vector or block of a square system as a block on the host."""
    return np.asarray(A.executor.to_host(as_block(A.executor, block, A.shape[0], name)))


def _proved(stops: list[Stop], A: Matrix, b: Numbers, x: Numbers) -> list[Stop]:
    """Return verdicts; *least squares* becomes *stagnated* if a column of A is not orthogonal.

    The rules of LSMR and the rank of orthogonal factors compare with the largest entries of the
    matrix. Columns of tiny entries have no weight in them.
    """
    return [
        Stop.STAGNATED if stop == Stop.LEAST_SQUARES and not met else stop
        for stop, met in zip(stops, is_orthogonal(A, b, x), strict=True)
    ]


def fits_densely(A: Matrix, seconds: float | None = None) -> bool:
    """Return whether dense orthogonal factors take a few seconds, or at most ``seconds``."""
    m, n = A.shape
    most = DENSE_WORK if seconds is None else min(DENSE_WORK, seconds / DENSE_SECONDS)
    return float(m) * n * min(m, n) <= most


def _dense_seconds(A: Matrix) -> float:
    m, n = A.shape
    return DENSE_SECONDS * float(m) * n * min(m, n)


def _per_iteration(A: Matrix) -> float:
    rates = rates_of(A)
    moved = PRODUCTS_PER_ITERATION * (rates.entry * A.nnz + rates.row * sum(A.shape))
    return max(4 * rates.launch + moved, 1e-9)


def dense_shortest(A: Matrix, block: Numbers, dtype: Any) -> ShortestSolution:
    """Return the shortest least squares solution by orthogonal factors of a dense matrix.

    Parameters
    ----------
    A : matrix, shape (m, n)
        The matrix.
    block : array, shape (m, k)
        Right-hand sides, on the host.
    dtype : dtype
        Of the solution.

    Returns
    -------
    ShortestSolution
        The norm of a column is NaN if its solution overflows the dtype or loses digits to
        underflow.

    References
    ----------
    E. Anderson et al., LAPACK Users' Guide, 3rd ed., SIAM 1999: gelsy.
    """
    from scipy.linalg import lstsq

    rows: Csr = A.asformat("csr").without_duplicates()
    read = A.executor.transfer(rows.indptr, rows.indices, rows.data).read()
    indptr, indices, data = (np.asarray(a) for a in read)
    wide = np.result_type(data.dtype, np.float64)
    matrix = np.zeros(A.shape, wide)
    matrix[np.repeat(np.arange(A.shape[0]), np.diff(indptr)), indices] = data
    unit = ROUNDOFFS_OF_RANK * float(np.finfo(data.dtype).eps) * float(np.sqrt(max(A.shape)))
    sides = np.asarray(block).astype(np.result_type(wide, block.dtype))
    size = _sizes(sides)  # columns scaled by this have squares in range
    with one_thread(threads_of_scipy) if max(A.shape) <= FOR_ONE_THREAD else nullcontext():
        x, _, rank, _ = lstsq(
            matrix, sides / size, cond=unit, lapack_driver="gelsy", check_finite=False
        )
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rounded = (x * size).astype(dtype)
        kept = rounded / size
        norm = column_norms(sides / size - matrix @ kept) * size
        lost = ~(column_norms(kept - x) <= LARGEST_ROUNDING * column_norms(x))
    return ShortestSolution(rounded, np.where(lost, np.nan, norm), int(rank))


def _sizes(columns: Numbers) -> Numbers:
    """Return powers of two near the largest elements of columns; 1 for zero or infinite ones."""
    largest = np.abs(columns).max(axis=0, initial=0.0)
    usable = (largest > 0) & np.isfinite(largest)
    return np.where(usable, 2.0 ** np.floor(np.log2(np.where(usable, largest, 1.0))), 1.0)


def _by_factors(A: Matrix, b: Any, result: Result, threshold: Numbers) -> Result:
    """Return the least squares solution of all columns by dense factors."""
    began = time.perf_counter()
    block = _on_host(A, b, "b")
    solution = dense_shortest(A, block, np.asarray(result.x).dtype)
    x, norm = solution.x, solution.residual_norm
    if np.any(np.isnan(norm)):
        return result
    stops = [
        Stop.CONVERGED if n <= t else Stop.LEAST_SQUARES
        for n, t in zip(norm, threshold, strict=True)
    ]
    if Stop.LEAST_SQUARES in stops:
        stops = _proved(stops, A, block, x)
    one = np.ndim(b) == 1
    native = A.executor.from_host(np.ascontiguousarray(x))
    return replace(
        result,
        x=like(A.executor, native, b),
        stops=stops,
        residual_norm=float(norm[0]) if one else norm,
        is_shortest=True,
        seconds=result.seconds + time.perf_counter() - began,
        notes=[
            f"lsmr did not end; orthogonal factors of rank {solution.rank}, by LAPACK in SciPy, did"
        ],
    )
