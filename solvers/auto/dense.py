"""Small systems: dense factors take less time than the set-up of an iterative solver."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import common_dtype
from ...core.formats import Csr, Matrix
from ...core.operands import as_block, like
from ...core.result import AttemptRecord, Result
from ...core.status import Stop
from ...core.stopping import AbsoluteResidual, Norms, RelativeResidual
from .accuracy import about_error
from .candidates import DIRECT
from .costs import factor_constants, rates_of
from .kept import kept_with

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.linop import LinOp

    Numbers = NDArray[Any]

#: Seconds of a dense solve without an operation: values are stored anew, the result is made.
FIXED = 1e-4

#: Rows at most: LAPACK's threads wait for one another in factorizations of larger matrices.
MOST_ROWS = 256

#: The precision of the factors for each dtype of a system.
PRECISION = {
    "float32": np.float64,
    "float64": np.float64,
    "complex64": np.complex128,
    "complex128": np.complex128,
}

#: Range of the sizes of values with squares that neither overflow nor underflow.
SAFE = (1e-140, 1e140)

#: A matrix counts as regular if its reciprocal condition number is this many units of rounding.
REGULAR = 100.0

#: The unit of rounding in double precision.
EPS = float(np.finfo(np.float64).eps)

#: Steps of refinement at most.
STEPS = 2

NOTES = (
    "direct: the matrix is small; dense factors take less time than the set-up of iterations",
    "direct: LAPACK in SciPy, on the host",
)


def is_small(A: LinOp) -> bool:
    """Return whether dense factors are expected to take less time than a call of a solver."""
    seconds = FIXED + factor_constants().dense_operation * 2 / 3 * float(A.shape[0]) ** 3
    return 0 < A.shape[0] <= MOST_ROWS and seconds <= rates_of(A).call


class SmallFactors:
    """LU factors of a small matrix with exchanged rows, in double precision on the host.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix.

    Attributes
    ----------
    is_regular : bool
        Whether the values are finite, of moderate size, and not singular to working precision.
    size, condition : float
        The norm of column sums, and the estimated condition number in that norm.

    References
    ----------
    E. Anderson et al., LAPACK Users' Guide, 3rd ed., SIAM 1999: getrf, getrs and gecon. N. J.
    Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, chapter 15, for the
    estimate of the condition number.
    """

    def __init__(self, A: Matrix) -> None:
        self.is_regular, self.condition = False, np.inf
        self._matrix = _stored(A)
        self.size = float(np.abs(self._matrix).sum(axis=0).max())
        if SAFE[0] < self.size < SAFE[1]:  # false for NaN
            self._factorize()

    def _factorize(self) -> None:
        from scipy.linalg import get_lapack_funcs

        functions: Any = get_lapack_funcs(("getrf", "getrs", "gecon"), (self._matrix,))
        factorize, self._apply, estimate = functions
        self._factors, self._pivots, info = factorize(self._matrix)
        if info == 0:
            reciprocal = float(estimate(self._factors, self.size)[0])
            self.condition = 1.0 / reciprocal if reciprocal > 0 else np.inf
            self.is_regular = bool(reciprocal > REGULAR * EPS)

    def solve(self, b: Numbers, threshold: Numbers, dtype: Any) -> tuple[Numbers, Numbers]:
        """Return a solution and the norms of its columns' residuals.

        Parameters
        ----------
        b : array, shape (n, k)
            Right-hand sides in double precision.
        threshold : array, shape (k,)
            Norms of residuals at which refinement ends.
        dtype : dtype
            Of the solution.
        """
        x = self._applied(b)
        for step in range(STEPS + 1):
            rounded = x.astype(dtype)
            residual = b - self._matrix @ rounded
            norm = np.linalg.norm(residual, axis=0)
            if step == STEPS or not np.all(np.isfinite(norm)) or np.all(norm <= threshold):
                break
            x = x + self._applied(residual)
        return rounded, norm

    def error(self, x: Numbers, residual_norm: Numbers) -> float:
        """Return the estimated relative error of a solution, of the worst column."""
        length = np.linalg.norm(x, axis=0)
        known = length > 0
        backward = residual_norm[known] / (self.size * length[known])
        eps = float(np.finfo(x.dtype).eps)
        return min(self.condition * max(float(np.max(backward, initial=0.0)), eps), 1.0)

    def _applied(self, b: Numbers) -> Numbers:
        found: Numbers = self._apply(self._factors, self._pivots, b)[0]
        return found


def _stored(A: Matrix) -> Numbers:
    """Return the entries of a matrix as a dense array in the order of LAPACK."""
    rows: Csr = A.T if A.format == "csc" else A.asformat("csr")
    indptr, indices, data = (
        np.asarray(a) for a in A.executor.to_host_together(rows.indptr, rows.indices, rows.data)
    )
    n = A.shape[0]
    lines = np.repeat(np.arange(n), np.diff(indptr))
    places = indices.astype(np.intp) + n * lines
    if A.format != "csc":
        places = lines + n * indices.astype(np.intp)
    flat: Numbers = np.zeros(n * n, PRECISION[data.dtype.name])
    np.add.at(flat, places, data)
    return flat.reshape(n, n, order="F")


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
        None if the system is not small, not regular, or the tolerance is not met: other methods
        have to solve it.
    """
    if not isinstance(A, Matrix) or A.partition is not None or not is_small(A):
        return None
    if A.dtype.name not in PRECISION:
        return None
    began = time.perf_counter()
    native = as_block(A.executor, b, A.shape[0], "b")
    if native.dtype.name not in PRECISION:
        return None
    dtype = common_dtype(A.dtype, native.dtype)
    precision = PRECISION[dtype.name]
    block: Numbers = np.asarray(A.executor.to_host(native)).astype(precision)
    with np.errstate(all="ignore"):
        norm_b = np.linalg.norm(block, axis=0)
    moderate = (norm_b > SAFE[0]) & (norm_b < SAFE[1])
    if not np.all(moderate | ~block.any(axis=0)):
        return None
    stop = RelativeResidual(rtol) | AbsoluteResidual(atol)  # raises for a bad tolerance
    threshold = stop.limits(Norms(norm_b, lambda: norm_b)).threshold
    assert threshold is not None
    kept = kept_with(A)
    factors: SmallFactors | None = kept.small
    if factors is None:
        factors = kept.small = SmallFactors(A)
    if not factors.is_regular:
        return None
    setup = time.perf_counter() - began
    x, norm = factors.solve(block, threshold, dtype)
    if not np.all(norm <= threshold):
        return None
    one = np.ndim(b) == 1
    k = block.shape[1]
    seconds = time.perf_counter() - began
    history = np.stack([norm_b, norm])
    error = factors.error(x, norm)
    tried = AttemptRecord(DIRECT, "dense", setup, 1, seconds - setup, "converged")
    return Result(
        x=like(A.executor, A.executor.from_host(np.ascontiguousarray(x)), b),
        stops=[Stop.CONVERGED] * k,
        column_iterations=np.ones(k, np.int64),
        residual_norm=float(norm[0]) if one else norm,
        residuals=history[:, 0] if one else history,
        threshold=float(threshold[0]) if one else threshold,
        seconds=seconds,
        solver="Direct",
        executor=A.executor.name,
        notes=[*NOTES, *about_error(error, factors.condition)],
        attempts=[tried],
        condition=factors.condition,
        error=error,
    )
