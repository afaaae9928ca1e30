"""Kronecker products and sums."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from ..dtypes import COMPUTED, held_dtype, index_dtype, is_narrow
from ..errors import ShapeMismatch
from ..formats.csr import Csr
from ..formats.kept_results import Repeated, kept_or_made
from ..formats.rowwise import row_bounds, with_index_dtype
from ..operations import rows
from ..store import Key
from .diagonals import eye
from .given import as_matrices, finished

if TYPE_CHECKING:
    from ..executor import Array, Executor

#: Key of the row pointers of the product with another pattern.
_POINTERS: Key[Repeated[Array]] = Key("pointers of a Kronecker product")


def kron(
    A: Any, B: Any, format: str | None = None, *, executor: Executor | str | None = None
) -> Any:
    """Return the Kronecker product: each entry of ``A`` times ``B``.

    Parameters
    ----------
    A, B : matrices of any library, or arrays of two dimensions
        Matrices of shapes (m, n) and (p, q).
    format : str, optional
        The format of the result; ``csr`` by default.
    executor : Executor or str, optional
        Executor of the result; by default the executor of the operands.

    Returns
    -------
    Matrix, shape (m p, n q)
        The product; duplicates in operands are not summed first.

    Raises
    ------
    ExecutorMismatch
        If the operands are on different executors.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.sparse.kron([[0.0, 2.0]], [[1.0], [3.0]]).to_dense()
    array([[0., 2.],
           [0., 6.]])
    """
    left, right = as_matrices((A, B), "kron", executor)
    dtypes = [np.float32 if is_narrow(m.dtype) else m.dtype for m in (left, right)]
    dtype = held_dtype(np.result_type(*dtypes))
    a, b = left.tocsr(), right.tocsr()
    made = _exact_product(a, b) if dtype not in COMPUTED else _product(*_both(a, b, dtype))
    if is_narrow(left.dtype) and left.dtype == right.dtype:
        made = made.astype(left.dtype)
    return finished(made, format, None, left, right)


def kronsum(
    A: Any, B: Any, format: str | None = None, *, executor: Executor | str | None = None
) -> Any:
    """Return the Kronecker sum of square matrices: ``kron(I, A) + kron(B, I)``.

    Parameters
    ----------
    A, B : matrices of any library, or arrays of two dimensions
        Square matrices with m and n rows.
    format, executor
        As for :func:`kron`.

    Returns
    -------
    Matrix, shape (m n, m n)

    Raises
    ------
    ShapeMismatch
        If an operand is not square.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.sparse.kronsum([[1.0]], [[2.0, 0.0], [0.0, 3.0]]).to_dense()
    array([[3., 0.],
           [0., 4.]])
    """
    left, right = as_matrices((A, B), "kronsum", executor)
    for matrix in (left, right):
        if matrix.shape[0] != matrix.shape[1]:
            raise ShapeMismatch(f"kronsum: expected square matrices, got shape {matrix.shape}")
    where = left.executor
    dtype = held_dtype(np.result_type(*(m.dtype for m in (left, right))))
    inner, outer = (eye(m.shape[0], dtype=dtype, executor=where) for m in (left, right))
    return finished(kron(outer, left) + kron(right, inner), format, None, left, right)


def _both(a: Csr, b: Csr, dtype: np.dtype[Any]) -> tuple[Csr, Csr]:
    first, second = (csr if csr.dtype == dtype else csr.astype(dtype) for csr in (a, b))
    return first, second


def _product(a: Csr, b: Csr) -> Csr:
    """Return the product of matrices with the same dtype, in which kernels compute."""
    with a.executor.uncaptured():
        return _filled(a, b)


def _filled(a: Csr, b: Csr) -> Csr:
    executor = a.executor
    shape = (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])
    entries = a.nnz * b.nnz
    index = index_dtype(max(*shape, entries), a.index_dtype, b.index_dtype)
    a, b = (with_index_dtype(csr, index) for csr in (a, b))
    given = b.shape[0], ref(b._pattern)
    indptr = kept_or_made(a, _POINTERS, given, partial(_pointers, a, b))
    indices, data = executor.allocate((entries,), index), executor.allocate((entries,), a.dtype)
    sides = (*row_bounds(a), a.indices, a.data, *row_bounds(b), b.indices, b.data)
    executor.run(rows.kron, *sides, b.shape[0], b.shape[1], indptr[:-1], indices, data)
    return Csr._from_arrays(executor, shape, data, indices, indptr)


def _pointers(a: Csr, b: Csr) -> Array:
    """Return the row pointers of the product."""
    indptr = a.executor.allocate((a.shape[0] * b.shape[0] + 1,), a.index_dtype)
    a.executor.run(rows.kron_pointers, a.indptr, b.indptr, b.shape[0], indptr)
    return indptr


def _exact_product(a: Csr, b: Csr) -> Csr:
    """Return the exact product: the kernel moves the positions of the entries of both."""
    positions, ones = zip(*(_carriers(csr) for csr in (a, b)), strict=True)
    made = _product(positions[0], ones[1])
    of_b = _product(ones[0], positions[1]).data
    first, second = (csr.data[at.astype(np.int64) - 1] for csr, at in ((a, made.data), (b, of_b)))
    values = first * second
    return made._with_data(values.astype(held_dtype(values.dtype), copy=False))


def _carriers(csr: Csr) -> tuple[Csr, Csr]:
    """Return a matrix with its entry numbers, from 1, as values, and a matrix of ones."""
    xp = csr.executor.xp
    numbers = xp.arange(1, csr.nnz + 1, dtype=np.float64)
    return csr._with_data(numbers), csr._with_data(xp.ones(csr.nnz, np.float64))
