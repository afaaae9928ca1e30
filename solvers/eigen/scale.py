"""The size of operators, and operators in units in which the size is near one.

Eigenvalue solvers square residuals, products and vectors. In units in which the norms of the
operators are near one, these squares stay in the range of the dtype. The units are powers of two,
which cause no rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.distributed.matrix import Csr as SharedCsr
from ...core.dtypes import real_dtype
from ...core.formats import Matrix
from ...core.formats.norms import norm
from ...core.lazy import Temporary
from ...core.linop import LinOp
from ...core.operations import vector
from . import tall

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

#: Residuals of pairs are rounding errors below this multiple of the precision and the norm of A.
ROUNDING = 256.0

#: A matrix is singular to rounding if its inverse amplifies random vectors more than the inverse of
#: a matrix with a smallest eigenvalue of this many unit roundoffs.
NEARLY_SINGULAR = 4.0

#: Operators of a size in this range need no scaling: even with A and B at opposite ends, squares of
#: residuals of rounding size are normal numbers.
SAFE_SIZES = {np.dtype(np.float32): (2.0**-10, 2.0**10), np.dtype(np.float64): (1e-60, 1e60)}


class Measure(NamedTuple):
    """The size of a square operator and deviations from a Hermitian positive definite one.

    Attributes
    ----------
    size : float
        The size of ``2**-exponent A``: for a matrix, the largest row sum; for an operator without
        known entries, a lower bound of the norm. NaN or Inf if products are not finite.
    exponent : int
        An even number; 0 for an operator of ordinary size.
    asymmetry : float
        An estimate of the Frobenius norm of ``A - A^H`` over that of ``A``.
    positive : bool
        False if a diagonal entry or a quadratic form of ``A`` is negative.
    """

    size: float
    exponent: int
    asymmetry: float
    positive: bool


#: The measure of the identity, for pencils without B.
IDENTITY = Measure(1.0, 0, 0.0, True)


def exponent_of(A: LinOp) -> tuple[float, int]:
    """Return a norm of an operator in units ``2**exponent``, and the exponent.

    The norm of a matrix is the largest row sum; for other operators, it is the ratio of the norms
    of a product and its random vector.
    """
    real = real_dtype(A.dtype)
    low, high = SAFE_SIZES.get(real, SAFE_SIZES[np.dtype(np.float32)])
    limits = np.finfo(real)
    # at the ends of the range, the sums themselves over- or underflow
    for trial in (0, limits.maxexp // 2, -(limits.maxexp // 2)):
        size = _size(A, trial)
        if low <= size <= high and trial == 0:
            return size, 0
        if np.isnan(size) or limits.tiny / limits.eps <= size < np.inf:
            break
    else:
        return size, 0
    if not np.isfinite(size):
        return size, 0
    exponent = 2 * int(np.round(np.log2(size) / 2))
    return float(np.ldexp(size, -exponent)), exponent - trial


def _size(A: LinOp, trial: int) -> float:
    """Return a norm of ``2**trial A``."""
    if not A.shape[0] or not A.shape[1]:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(A, (Matrix, SharedCsr)):
            rows = A if isinstance(A, Matrix) else A.extended
            found = float(norm(with_scaled_entries(rows, trial), np.inf)) if A.local_rows else 0.0
            links = A.executor.links
            return found if links is None else float(np.max(links.all(found)))
        x = tall.random_block(A.executor, A.local_columns, 1, A.dtype)
        y = A.executor.allocate((A.local_rows, 1), A.dtype)
        rescaled(A, trial)._multiply(x, y, 1.0, 0.0)
        after, before = (_lengths(A.executor, _on_host(A.executor, block)) for block in (y, x))
        return float(after[0] / before[0])


def _lengths(executor: Executor, block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the norms of the columns of a block on the host; on a member, of all rows."""
    found = np.linalg.norm(block, axis=0)
    if executor.links is None:
        return np.asarray(found)
    return np.asarray(np.linalg.norm(executor.links.all(found), axis=0))


def _on_host(executor: Executor, X: Array) -> np.ndarray[Any, Any]:
    """Return a block in double precision on the host."""
    found = np.asarray(executor.to_host(X))
    return found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)


def measured(A: LinOp) -> Measure:
    """Measure a square operator: its size, its symmetry and the signs of quadratic forms.

    One product with two random vectors ``x`` and ``y`` gives ``x^H A y`` and ``y^H A x``, which are
    compared.
    """
    size, exponent = exponent_of(A)
    if not size or not np.isfinite(size):
        return Measure(size, 0, 0.0, True)
    executor = A.executor
    X = tall.random_block(executor, A.local_rows, 2, A.dtype)
    Y = executor.allocate(tuple(X.shape), A.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        rescaled(A, -exponent)._multiply(X, Y, 1.0, 0.0)
        left, right = _on_host(executor, X), _on_host(executor, Y)
        forms = left.conj().T @ right
        if executor.links is not None:
            forms = np.sum(executor.links.all(forms), axis=0)
        lengths = _lengths(executor, right)
    if not np.all(np.isfinite(forms)):
        return Measure(float("nan"), 0, 0.0, True)
    difference = np.abs(forms - forms.conj().T).max()
    asymmetry = float(difference / lengths.max()) if lengths.max() > 0 else 0.0
    rounding = ROUNDING * float(np.finfo(A.dtype).eps)
    scale = _lengths(executor, left) * lengths
    positive = bool(np.all(np.real(np.diag(forms)) >= -rounding * scale))
    if isinstance(A, (Matrix, SharedCsr)):
        diagonal = np.real(np.asarray(executor.to_host(A.diagonal())))
        negative = executor.agreed(bool(np.any(diagonal < 0)))
        positive = positive and not negative
    return Measure(size, exponent, asymmetry, positive)


def is_rounding(inverse: LinOp, size: float) -> bool:
    """Return whether an inverse belongs to a matrix of a size that is singular to rounding."""
    n, executor = inverse.shape[0], inverse.executor
    if not n:
        return False
    random = np.random.default_rng(0).standard_normal((n, 1)).astype(inverse.dtype)
    y = executor.zeros((n, 1), inverse.dtype)
    inverse._apply(executor.from_host(random), y, 1.0, 0.0)
    grown = float(np.linalg.norm(_on_host(executor, y))) / n**0.5
    eps = float(np.finfo(inverse.dtype).eps)
    return not grown * size * NEARLY_SINGULAR * eps <= 1.0


def with_scaled_entries(A: Any, exponent: int) -> Any:
    """Return ``2**exponent A`` as a matrix; ``A`` itself if the exponent is 0."""
    for half in _halves(exponent):
        A = A * half
    return A


def _halves(exponent: int) -> tuple[float, ...]:
    """Return two powers of two with the product ``2**exponent``, which may be out of range."""
    exponent = int(exponent)  # a power of NumPy's integer has a dtype, which would widen a matrix
    if exponent == 0:
        return ()
    return 2.0 ** (exponent // 2), 2.0 ** (exponent - exponent // 2)


def rescaled(A: LinOp, exponent: int) -> LinOp:
    """Return the operator ``2**exponent A``; ``A`` itself if the exponent is 0."""
    return A if exponent == 0 else Rescaled(A, exponent)


class Rescaled(LinOp):
    """An operator times a power of two.

    Half of the factor is applied to the vector and half to the product, so that neither leaves the
    range of the dtype, even for entries at its ends.
    """

    def __init__(self, inner: LinOp, exponent: int) -> None:
        self.inner, self.exponent = inner, exponent
        self.shape, self.dtype, self.executor = inner.shape, inner.dtype, inner.executor
        self._before, self._after_product = _halves(exponent)
        self._blocks = Temporary()

    @property
    def partition(self) -> Any:
        """The distribution of rows, if a group of executors shares the operator."""
        return self.inner.partition

    @property
    def column_partition(self) -> Any:
        """The distribution of the vectors to be multiplied."""
        return self.inner.column_partition

    @property
    def local_rows(self) -> int:
        """The length of this executor's part of the products."""
        return self.inner.local_rows

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self._run(self.inner._apply, x, y, alpha, beta)

    def _multiply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self._run(self.inner._multiply, x, y, alpha, beta)

    def _run(self, product: Any, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        rows, columns = map(int, x.shape)
        with self._blocks.block(self.executor, rows, columns, self.dtype) as scaled:
            self.executor.run(vector.axpby, x, scaled, self._before, 0.0)
            product(scaled, y, alpha * self._after_product, beta)

    def to(self, executor: Executor | str) -> LinOp:
        """Return this operator on another executor."""
        return rescaled(self.inner.to(executor), self.exponent)

    def astype(self, dtype: Any) -> LinOp:
        """Return this operator computing in another dtype."""
        return rescaled(self.inner.astype(dtype), self.exponent)
