"""Bounds of spectra, found by a few steps of the Arnoldi process on the executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.dtypes import real_dtype
from ..core.formats.rowwise import row_bounds
from ..core.operations import coarsen, values, vector
from .driver.scaling import column_values

if TYPE_CHECKING:
    from ..core.executor import Array, Executor
    from ..core.formats import Csr
    from ..core.linop import LinOp

#: Steps of the process. Ten find the largest eigenvalue of a stencil to 5 to 10 %; what is
#: missing is bounded by the residual, which is added.
STEPS = 10


class Spectrum(NamedTuple):
    """What a few steps tell of the eigenvalues of ``D^-1 A``.

    Attributes
    ----------
    radius : float
        The largest modulus that was found, plus its residual: an estimate from above.
    real : float
        The smallest real part that was found.
    """

    radius: float
    real: float


def estimate(A: LinOp, inverse: LinOp, steps: int = STEPS) -> Spectrum:
    """Estimate the spectrum of ``inverse @ A`` by the Arnoldi process.

    Parameters
    ----------
    A : LinOp, shape (n, n)
        The operator.
    inverse : LinOp, shape (n, n)
        The inverse of its diagonal, or another M, on the same executor and of the same dtype.
    steps : int
        Products with ``A``; as many vectors are kept meanwhile.

    Notes
    -----
    The first vector is a fixed sequence of numbers between -1 and 1, so that the bounds are the
    same in every run.

    References
    ----------
    Y. Saad, Numerical Methods for Large Eigenvalue Problems, 2nd ed., SIAM 2011, algorithm 6.1;
    Y. Zhou and R.-C. Li, Bounding the spectrum of large Hermitian matrices, Linear Algebra Appl.
    435 (2011), for the residual as a safeguard.
    """
    executor, n = A.executor, A.local_rows
    steps = min(steps, A.shape[0])
    basis = [_start(executor, A)]
    _scale(executor, basis[0], 1.0 / _norm(executor, basis[0]))
    hessenberg = np.zeros((steps + 1, steps), np.complex128)
    found = 0
    for j in range(steps):
        product = executor.allocate((n, 1), A.dtype)
        w = executor.allocate((n, 1), A.dtype)
        A._apply(basis[j], product, 1.0, 0.0)
        inverse._apply(product, w, 1.0, 0.0)
        before = _norm(executor, w)
        for i, v in enumerate(basis):
            hessenberg[i, j] = _dot(executor, v, w)
            factor = complex(hessenberg[i, j])
            executor.run(vector.axpby, v, w, -_as(A.dtype, factor), 1.0)
        after = hessenberg[j + 1, j] = _norm(executor, w)
        found = j + 1
        if not np.isfinite(before) or after <= 100 * np.finfo(A.dtype).eps * before:
            break
        _scale(executor, w, 1.0 / float(after))
        basis.append(w)
    return _from_hessenberg(hessenberg[: found + 1, :found])


def row_bound(A: Csr) -> float:
    """Return the largest row sum of ``|D^-1 A|``, which no eigenvalue of ``D^-1 A`` exceeds.

    One pass over the matrix. There is no sum over rows in it: all executors give the same bits.
    NaN if the matrix has values that are not finite.
    """
    executor, n = A.executor, A.shape[0]
    if n == 0:
        return 1.0
    sums = executor.allocate((n,), real_dtype(A.dtype))
    executor.run(coarsen.radius, *row_bounds(A), A.indices, A.data, sums)
    found = executor.allocate((1,), sums.dtype)
    executor.run(values.largest, sums.reshape(n, 1), found)
    return float(executor.to_host(found)[0])


#: Steps of the power method, and what it is multiplied by to be a bound: for stencils and
#: elasticity it finds 0.92 to 1 of the largest eigenvalue.
POWER_STEPS = 15
POWER_MARGIN = 1.1


def power_estimate(A: Csr) -> float:
    """Estimate the largest modulus of an eigenvalue of ``D^-1 A`` by the power method.

    Norms are maxima: no sum over rows is taken, and all executors give the same bits. The host
    waits once.
    """
    executor, n = A.executor, A.shape[0]
    if n == 0:
        return 1.0
    x, y = (executor.allocate((n,), A.dtype) for _ in range(2))
    norms = executor.allocate((3,), real_dtype(A.dtype))
    executor.run(coarsen.start, x)
    for step in range(POWER_STEPS):
        executor.run(coarsen.power, *row_bounds(A), A.indices, A.data, x, y)
        x, y = y, x
        left = POWER_STEPS - step - 1
        if left < 3:
            executor.run(vector.largest, x.reshape(n, 1), norms[left : left + 1])
    last, _, before = (float(norm) for norm in executor.to_host(norms))
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
    xp, n, dtype = executor.xp, A.local_rows, A.dtype
    if A.partition is None or executor.links is None:
        rows = xp.arange(n, dtype=np.int64)
    else:
        rows = executor.from_host(A.partition.rows(executor.links.rank).astype(np.int64))
    # a linear congruence of the row's number: the same numbers on every executor
    scrambled = (rows * 1103515245 + 12345) % 2**31
    return (scrambled / 2.0**30 - 1.0).astype(dtype).reshape(n, 1)


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
