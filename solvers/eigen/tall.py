"""Products of tall blocks of vectors with each other and with small matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.operations import vector

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.linop import LinOp

Numbers = np.ndarray[Any, Any]

#: Number of rows that are multiplied at a time: for a thread of the host, three blocks of 16
#: vectors in its second-level cache, and for a device. For 216,000 rows and two threads, a product
#: took 46 ms with 512 rows at a time, 153 ms with 8192, and seconds for all rows at once (Xeon,
#: noisy).
HOST_ROWS, DEVICE_ROWS = 1 << 8, 1 << 20

#: Directions of a block below this multiple of the precision, relative to the longest, are rounding
#: errors.
DEPENDENT = 10.0


def total(executor: Executor, small: Array) -> Array:
    """Return the sum over the group of an array that each member computed for its rows."""
    if executor.links is not None and small.size:
        small = executor.copy(small)
        executor.links.sum(small)
    return small


def gram(executor: Executor, X: Array, Y: Array) -> Numbers:
    """Return ``X^H Y`` on the host; for a group, over the rows of all members."""
    xp, rows = executor.xp, rows_at_once(executor, X)
    found: Any = None
    for begin in range(0, max(int(X.shape[0]), 1), rows):
        left = X[begin : begin + rows]
        left = left.conj().T if X.dtype.kind == "c" else left.T
        part = xp.matmul(left, Y[begin : begin + rows])
        found = part if found is None else found + part
    return np.array(executor.to_host(total(executor, found)))


def times(executor: Executor, X: Array, C: Numbers, Y: Array, alpha: float = 1.0) -> None:
    """Set ``Y = Y + alpha X C``; alpha is -1 or 1."""
    small = executor.from_host(np.ascontiguousarray(alpha * C, dtype=X.dtype))
    rows = rows_at_once(executor, X)
    for begin in range(0, int(X.shape[0]), rows):
        part = slice(begin, begin + rows)
        Y[part] += executor.xp.matmul(X[part], small)


def replace(executor: Executor, S: Array, C: Numbers) -> None:
    """Set the first columns of ``S`` to ``S C``, some rows at a time."""
    used, made = C.shape
    if made == 0:
        return
    small = executor.from_host(np.ascontiguousarray(C, dtype=S.dtype))
    rows = rows_at_once(executor, S)
    for begin in range(0, int(S.shape[0]), rows):
        part = slice(begin, begin + rows)
        S[part, :made] = executor.xp.matmul(S[part, :used], small)


def rows_at_once(executor: Executor, X: Array) -> int:
    """Return the number of rows of a block that are multiplied at a time."""
    if not isinstance(X, np.ndarray):
        return DEVICE_ROWS
    return HOST_ROWS * int(getattr(executor, "threads", 1))


def apply(A: LinOp, X: Array, Y: Array) -> None:
    """Set ``Y = A X`` for blocks of the operator's dtype."""
    if X.shape[1]:
        A._multiply(X, Y, 1.0, 0.0)


def copy(executor: Executor, X: Array, Y: Array) -> None:
    """Set ``Y = X``."""
    if X.shape[1]:
        executor.run(vector.axpby, X, Y, 1.0, 0.0)


def factor_of_basis(G: Numbers, eps: float) -> Numbers:
    """Return ``C`` such that the columns of ``X C`` are orthonormal where ``G = X^H X``.

    Columns are first scaled to length one. Directions of rounding size are dropped, so that ``C``
    may have fewer columns than rows.

    References
    ----------
    A. Stathopoulos and K. Wu, A block orthogonalization procedure with constant synchronization
    requirements, SIAM J. Sci. Comput. 23 (2002), algorithm SVQB.
    """
    import scipy.linalg  # it takes long to import, and few need it

    size = np.sqrt(np.maximum(np.real(np.diag(G)), 0.0))
    largest = float(np.max(size, initial=0.0))
    if not (largest > 0 and np.isfinite(largest)):
        return np.zeros((G.shape[0], 0), G.dtype)
    inverse = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 0.0)
    scaled = inverse[:, None] * G * inverse
    values, vectors = scipy.linalg.eigh(0.5 * (scaled + scaled.conj().T))
    kept = values > DEPENDENT * G.shape[0] * eps * max(float(values[-1]), 1.0)
    return inverse[:, None] * vectors[:, kept] / np.sqrt(values[kept])


def random_block(executor: Executor, n: int, k: int, dtype: Any, seed: Any = 0) -> Array:
    """Return a block of normal random numbers, the same on every executor.

    Members of a group draw different numbers.
    """
    if executor.links is not None and executor.links.size > 1:
        seed = (*np.atleast_1d(seed).tolist(), executor.links.rank)
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((n, k))
    if np.dtype(dtype).kind == "c":
        made = made + 1j * rng.standard_normal((n, k))
    return executor.from_host(np.ascontiguousarray(made.astype(dtype)))
