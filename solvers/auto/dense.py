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

#: Units of rounding that the reciprocal condition number of a regular matrix exceeds.
REGULAR = 100.0

#: The unit of rounding in double precision.
EPS = float(np.finfo(np.float64).eps)

#: Steps of refinement at most.
STEPS = 2

NOTES = (
    "direct: the matrix is small; dense factors take less time than the set-up of iterations",
    "direct: LAPACK in NumPy, on the host",
)


def is_small(A: LinOp) -> bool:
    """Return whether dense factors are expected to take less time than a call of a solver."""
    seconds = FIXED + factor_constants().dense_operation * 2 / 3 * float(A.shape[0]) ** 3
    return 0 < A.shape[0] <= MOST_ROWS and seconds <= rates_of(A).call


class SmallMatrix:
    """A small matrix in double precision on the host, as LAPACK takes it.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The matrix.

    Attributes
    ----------
    is_regular : bool
        Whether the values are finite, of moderate size, and not singular to working precision.
    size, condition : float
        The norm of column sums, and a lower bound of the condition number in that norm, which is
        infinite before the first solve.

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
        self._matrix = _stored(A)
        self.size = float(np.abs(self._matrix).sum(axis=0).max())
        self.is_regular = SAFE[0] < self.size < SAFE[1]  # false for NaN

    def solve(self, b: Numbers, threshold: Numbers, dtype: Any) -> tuple[Numbers, Numbers] | None:
        """Return a solution and the norms of its columns' residuals; None of a singular matrix.

        Parameters
        ----------
        b : array, shape (n, k)
            Right-hand sides in double precision.
        threshold : array, shape (k,)
            Norms of residuals at which refinement ends.
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
                residual = b - self._matrix @ rounded
                norm: Numbers = np.sqrt(np.sum(np.abs(residual) ** 2, axis=0)).reshape(k)
                if step == STEPS or not np.all(np.isfinite(norm)) or np.all(norm <= threshold):
                    break
                x = x + self._applied(residual)
        except np.linalg.LinAlgError:  # a pivot is zero
            self.is_regular = False
            return None
        return rounded, norm

    def _estimated(self, b: Numbers) -> Numbers:
        """Return the solution, and estimate the condition number by some more columns."""
        n, k = b.shape
        signs = np.where(np.arange(n) % 2, -1.0, 1.0)
        alternating = signs * (1 + np.arange(n) / max(n - 1, 1))
        random = np.where(np.random.default_rng(n).random(n) < 0.5, -1.0, 1.0)
        probes = np.stack([np.ones(n), alternating, random], axis=1)
        x = self._applied(np.concatenate([b, probes], axis=1))
        inverse = np.abs(x[:, k:]).sum(axis=0) / np.abs(probes).sum(axis=0)
        self.condition = float(max(np.max(inverse) * self.size, 1.0))
        self.is_regular = bool(self.condition * REGULAR * EPS < 1)
        return np.ascontiguousarray(x[:, :k])

    def error(self, x: Numbers, residual_norm: Numbers) -> float:
        """Return the estimated relative error of a solution, of the worst column."""
        length = np.linalg.norm(x, axis=0)
        known = length > 0
        backward = residual_norm[known] / (self.size * length[known])
        eps = float(np.finfo(x.dtype).eps)
        return min(self.condition * max(float(np.max(backward, initial=0.0)), eps), 1.0)

    def _applied(self, b: Numbers) -> Numbers:
        found: Numbers = np.linalg.solve(self._matrix, b)
        return found


def _stored(A: Matrix) -> Numbers:
    """Return the entries of a matrix as a dense array."""
    rows: Csr = A.T if A.format == "csc" else A.asformat("csr")
    indptr, indices, data = (
        np.asarray(a) for a in A.executor.to_host_together(rows.indptr, rows.indices, rows.data)
    )
    n = A.shape[0]
    lines = np.repeat(np.arange(n), np.diff(indptr))
    places = n * lines + indices.astype(np.intp)
    if A.format == "csc":
        places = lines + n * indices.astype(np.intp)
    flat: Numbers = np.zeros(n * n, PRECISION[data.dtype.name])
    np.add.at(flat, places, data)
    return flat.reshape(n, n)


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
    small: SmallMatrix | None = kept.small
    if small is None:
        small = kept.small = SmallMatrix(A)
    if not small.is_regular:
        return None
    setup = time.perf_counter() - began
    with np.errstate(all="ignore"):
        found = small.solve(block, threshold, dtype)
    if found is None or not np.all(found[1] <= threshold):
        return None
    x, norm = found
    one = np.ndim(b) == 1
    k = block.shape[1]
    seconds = time.perf_counter() - began
    history = np.stack([norm_b, norm])
    error = small.error(x, norm)
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
        notes=[*NOTES, *about_error(error, small.condition)],
        attempts=[tried],
        condition=small.condition,
        error=error,
    )
