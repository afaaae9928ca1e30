"""Bounds of spectra, from a few steps of the Arnoldi process on the executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.distributed.halo import Ghosts
from ..core.dtypes import real_dtype
from ..core.errors import InvalidArgument
from ..core.formats import Diagonal, Matrix
from ..core.formats.rowwise import row_bounds
from ..core.operations import coarsen, values, vector
from .driver.scaling import SAFE_SIZES, column_values, scale_for, times

if TYPE_CHECKING:
    from ..core.distributed.matrix import Csr as SharedCsr
    from ..core.executor import Array, Executor
    from ..core.formats import Csr
    from ..core.linop import LinOp

#: Number of steps. Ten steps find the largest eigenvalue of a stencil to 5 to 10 %; the residual,
#: which is added, bounds the error.
STEPS = 10


class Spectrum(NamedTuple):
    """Estimates of the eigenvalues of ``D^-1 A`` from a few steps.

    Attributes
    ----------
    radius : float
        The largest modulus found, plus its residual: an estimate from above.
    real : float
        The smallest real part found.
    """

    radius: float
    real: float


def checked_bounds(bounds: Any) -> tuple[float, float]:
    """Return an interval of positive numbers, or raise InvalidArgument."""
    try:
        low, high = (float(bound) for bound in bounds)
        fits = 0 < low <= high < np.inf
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InvalidArgument(f"bounds: expected (low, high) with 0 < low <= high, got {bounds!r}")
    return low, high


def estimate(A: LinOp, inverse: LinOp, steps: int = STEPS) -> Spectrum:
    """Estimate the spectrum of ``inverse @ A`` by the Arnoldi process.

    Parameters
    ----------
    A : LinOp, shape (n, n)
        The operator.
    inverse : LinOp, shape (n, n)
        The inverse of its diagonal, or another preconditioner with the same executor and dtype.
    steps : int
        Number of products with ``A``; twice as many vectors are stored meanwhile.

    Notes
    -----
    If ``inverse`` is Hermitian positive or negative definite, its inner product is used, in which
    ``inverse @ A`` is self-adjoint for a Hermitian ``A``: then no Ritz value is outside the
    spectrum. For other operators, the inner product is Euclidean.

    The initial vector is a hash of the row indices between -1 and 1. It is the same on every
    executor and has a component along each eigenvector; a structured sequence can be orthogonal to
    eigenvectors of grids.

    References
    ----------
    Y. Saad, Numerical Methods for Large Eigenvalue Problems, 2nd ed., SIAM 2011, algorithm 6.1;
    Y. Zhou and R.-C. Li, Bounding the spectrum of large Hermitian matrices, Linear Algebra Appl.
    435 (2011), for the residual as a safeguard; J. W. Daniel, W. B. Gragg, L. Kaufman, G. W.
    Stewart, Reorthogonalization and stable algorithms for updating the Gram-Schmidt QR
    factorization, Math. Comp. 30 (1976).
    """
    estimate_of_spectrum = _estimated(A, inverse, steps)
    low, high = SAFE_SIZES[real_dtype(A.dtype)]
    if low <= estimate_of_spectrum.radius <= high:
        return estimate_of_spectrum
    scales = scale_for(A), scale_for(inverse)  # squares of norms left their range
    if scales == (1.0, 1.0):
        return estimate_of_spectrum
    scaled = _estimated(times(scales[0], A), times(scales[1], inverse), steps)
    with np.errstate(over="ignore"):
        radius, real = (np.float64(number) / scales[0] / scales[1] for number in scaled)
    return Spectrum(float(radius), float(real))


def _estimated(A: LinOp, inverse: LinOp, steps: int) -> Spectrum:
    steps = min(steps, A.shape[0])
    process = _Weighted(A, inverse).run(steps)
    if process is None:
        process = _Euclidean(A, inverse).run(steps)
    assert process is not None  # the Euclidean product exists for every operator
    return _from_hessenberg(process)


#: Repeat the orthogonalization if it reduces the norm of a vector below this fraction. With a
#: smaller fraction, the loss of orthogonality grows from step to step.
SHORTENED = 0.7

#: A space is exhausted if the remainder of a product has at most this many unit roundoffs.
EXHAUSTED_ROUNDOFFS = 100


class _Arnoldi:
    """The Arnoldi process for ``inverse @ A`` in an inner product."""

    def __init__(self, A: LinOp, inverse: LinOp) -> None:
        self.A, self.inverse, self.executor = A, inverse, A.executor
        self.basis: list[Array] = []

    def run(self, steps: int) -> np.ndarray[Any, Any] | None:
        """Return the Hessenberg matrix, of shape (k + 1, k) after ``k`` steps.

        None if the inner product is not positive.
        """
        hessenberg = np.zeros((steps + 1, steps), np.complex128)
        if self.append(_start(self.executor, self.A)) is None:
            return None
        limit = EXHAUSTED_ROUNDOFFS * float(np.finfo(self.A.dtype).eps)
        for j in range(steps):
            w = self.product(j)
            before = _norm(self.executor, w)
            left = self.orthogonalized(w, hessenberg[: j + 1, j])
            if left < SHORTENED * before:
                left = self.orthogonalized(w, hessenberg[: j + 1, j])
            if not np.isfinite(before) or left <= limit * before:
                return hessenberg[: j + 2, : j + 1]
            length = self.append(w)
            if length is None:
                return None
            hessenberg[j + 1, j] = length
        return hessenberg

    def orthogonalized(self, w: Array, coefficients: np.ndarray[Any, Any]) -> float:
        """Subtract the components in the basis from ``w``; add them to the coefficients."""
        for i, v in enumerate(self.basis):
            part = self.part(i, w)
            coefficients[i] += part
            self.executor.run(vector.axpby, v, w, -_as(self.A.dtype, part), 1.0)
        return _norm(self.executor, w)

    def append(self, w: Array) -> float | None:
        """Append a normalized vector to the basis; return its norm before."""
        raise NotImplementedError

    def product(self, j: int) -> Array:
        """Return the image of a basis vector."""
        raise NotImplementedError

    def part(self, i: int, w: Array) -> complex:
        """Return the inner product of a basis vector and ``w``."""
        raise NotImplementedError


class _Euclidean(_Arnoldi):
    """The process in the Euclidean inner product: ``w = inverse A v``."""

    def append(self, w: Array) -> float | None:
        length = _norm(self.executor, w)
        _scale(self.executor, w, 1.0 / length)
        self.basis.append(w)
        return length

    def product(self, j: int) -> Array:
        return _image(self.inverse, _image(self.A, self.basis[j]))

    def part(self, i: int, w: Array) -> complex:
        return _dot(self.executor, self.basis[i], w)


class _Weighted(_Arnoldi):
    """The process in the inner product of ``inverse``: ``w = A z`` with ``z = inverse v``.

    The basis stores ``v`` instead of the vectors ``z`` of the process, so that no inverse of
    ``inverse`` is needed. With ``sign`` -1, both operators are negated.
    """

    def __init__(self, A: LinOp, inverse: LinOp) -> None:
        super().__init__(A, inverse)
        self.images: list[Array] = []
        self.sign = 0.0

    def append(self, w: Array) -> float | None:
        z = _image(self.inverse, w)
        square = _dot(self.executor, w, z)
        sign = float(np.sign(square.real))
        self.sign = self.sign or sign
        near = float(np.sqrt(np.finfo(self.A.dtype).eps))
        if not np.isfinite(square) or sign == 0 or sign != self.sign:
            return None
        if abs(square.imag) > near * abs(square) or not self.is_orthogonal(z, near):
            return None
        length = float(np.sqrt(abs(square.real)))
        _scale(self.executor, w, 1.0 / length)
        _scale(self.executor, z, self.sign / length)
        self.basis.append(w)
        self.images.append(z)
        return length

    def is_orthogonal(self, z: Array, near: float) -> bool:
        """Return whether ``z`` is orthogonal to the first vector, as for a Hermitian ``inverse``.

        The vector with the image ``z`` is orthogonal to the image of the first vector.
        """
        if not self.basis or isinstance(self.inverse, Diagonal):
            return True
        first = self.basis[0]
        sizes = _norm(self.executor, first) * _norm(self.executor, z)
        return abs(_dot(self.executor, first, z)) <= near * sizes

    def product(self, j: int) -> Array:
        w = _image(self.A, self.images[j])
        _scale(self.executor, w, self.sign)
        return w

    def part(self, i: int, w: Array) -> complex:
        return _dot(self.executor, self.images[i], w)


def _image(operator: LinOp, x: Array) -> Array:
    image = operator.executor.allocate(x.shape, operator.dtype)
    operator._apply(x, image, 1.0, 0.0)
    return image


#: Use the row bound instead of the estimate if it is at most this multiple of it: it is never too
#: low.
NEAR_ROWS = 1.1


def upper_bound(A: LinOp, estimated: float) -> float:
    """Return an upper bound of ``D^-1 A``'s eigenvalues, from an estimate and the row sums.

    No eigenvalue exceeds the largest row sum, which is returned unless it is far above the
    estimate.
    """
    if not isinstance(A, Matrix) or A.partition is not None:
        return estimated
    rows = row_bound(A.asformat("csr").without_duplicates())
    return rows if rows <= NEAR_ROWS * estimated else estimated


def row_bound(A: Csr) -> float:
    """Return the largest row sum of ``|D^-1 A|``, which no eigenvalue of ``D^-1 A`` exceeds.

    It takes one pass over the matrix, without a sum over rows: all executors return the same bits.
    NaN if the matrix has values that are not finite.
    """
    return float(A.executor.to_host(largest_row_sum(A))[0])


def largest_row_sum(A: Csr) -> Array:
    """Return the result of :func:`row_bound` as an array of its executor; 1 without rows."""
    executor, n = A.executor, A.shape[0]
    largest = executor.allocate((1,), real_dtype(A.dtype))
    if n == 0:
        executor.run(vector.fill, largest.reshape(1, 1), 1.0)
        return largest
    sums = executor.allocate((n,), largest.dtype)
    executor.run(coarsen.radius, *row_bounds(A), A.indices, A.data, sums)
    executor.run(values.largest, sums.reshape(n, 1), largest)
    return largest


#: Number of steps of the power method, and the factor that turns its result into a bound: for
#: stencils and elasticity it finds 0.92 to 1 of the largest eigenvalue.
POWER_STEPS = 15
POWER_MARGIN = 1.1


def power_estimate(A: Csr, shared: SharedCsr | None = None) -> float:
    """Estimate the largest modulus of an eigenvalue of ``D^-1 A`` by the power method.

    Norms are maxima, without sums over rows: all executors and groups return the same bits. The
    host waits once.

    Parameters
    ----------
    A : Csr
        The rows of the matrix; if a group shares it, a member's rows with its own columns and then
        its ghosts.
    shared : distributed.Csr, optional
        The matrix that a group shares; all members must call this.
    """
    executor, n = A.executor, A.shape[0]
    if shared is None and n == 0:
        return 1.0
    x, y = (executor.allocate((A.shape[1],), A.dtype) for _ in range(2))
    norms = executor.zeros((3,), real_dtype(A.dtype))
    executor.run(coarsen.start, 0 if shared is None else shared.first_row, x[:n])
    ghosts: list[Ghosts] = []
    if shared is not None:
        ghosts = [Ghosts(shared.executor, shared.halo, block, n, n) for block in (x, y)]
    for step in range(POWER_STEPS):
        if ghosts:
            ghosts[step % 2].fill()
        executor.run(coarsen.power, *row_bounds(A), A.indices, A.data, x, y[:n])
        x, y = y, x
        left = POWER_STEPS - step - 1
        if left < 3 and n:
            executor.run(vector.largest, x[:n].reshape(n, 1), norms[left : left + 1])
    lengths = executor.to_host(norms)
    if shared is not None:
        lengths = np.max(shared.executor.links.all(lengths), axis=0)  # type: ignore[union-attr]
    last, _, before = (float(norm) for norm in lengths)
    return float(np.sqrt(last / before)) if before > 0 else before


def _from_hessenberg(hessenberg: np.ndarray[Any, Any]) -> Spectrum:
    if hessenberg.size == 0 or not np.all(np.isfinite(hessenberg)):
        return Spectrum(np.nan, np.nan)
    values, vectors = np.linalg.eig(hessenberg[:-1])
    residuals = abs(hessenberg[-1, -1]) * np.abs(vectors[-1])
    largest = int(np.argmax(np.abs(values)))
    return Spectrum(
        float(abs(values[largest]) + residuals[largest]), float(np.min(np.real(values)))
    )


def _start(executor: Executor, A: LinOp) -> Array:
    links = executor.links
    shared = A.partition is not None and links is not None
    if shared and links is not None and A.partition.numbers is not None:
        x = executor.allocate((A.shape[0],), A.dtype)
        executor.run(coarsen.start, 0, x)  # a member's part of the vector of all rows
        x = executor.from_host(A.partition.part(executor.to_host(x), links.rank).copy())
    else:
        x = executor.allocate((A.local_rows,), A.dtype)
        first = int(A.partition.offsets[links.rank]) if shared and links is not None else 0
        executor.run(coarsen.start, first, x)
    return x.reshape(A.local_rows, 1)


def _as(dtype: np.dtype[Any], value: complex) -> complex:
    return value if dtype.kind == "c" else value.real


def _scale(executor: Executor, x: Array, factor: float) -> None:
    executor.run(vector.axpby, x, x, factor, 0.0)


def _norm(executor: Executor, x: Array) -> float:
    return float(column_values(executor, vector.norm, x)[0])


def _dot(executor: Executor, x: Array, y: Array) -> complex:
    value = executor.allocate((1,), x.dtype)
    executor.run(vector.dot, x, y, value)
    return complex(executor.to_host(value)[0])
