"""Products and sums of matrices, which are computed eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..assembled import Assembled, product_of_matrices, sum_of_matrices
from ..capture import MAKES
from ..dtypes import double_dtype, is_narrow
from ..errors import ShapeMismatch
from ..executor import brought_together
from ..long_sums import LONG, has_long_row, rounded_to
from ..operations import structure
from ..small_values import entry_sums
from ..store import Key
from .base import Matrix
from .csr import Csr
from .exact import add as exact_add
from .exact import both_exact
from .exact import matmul as exact_matmul
from .rowwise import (
    computed_dtype,
    known_canonical,
    of_pattern,
    order_of,
    same_pattern,
    with_index_dtype,
)

_HAS_LONG_ROW: Key[bool] = Key("a long row")


def _as_csr(*matrices: Matrix | Assembled) -> list[Csr]:
    """Return matrices as Csr with common value and index dtypes; 16-bit values as float32."""
    dtype = computed_dtype(*matrices)
    converted = [entries_in(m, dtype) for m in matrices]
    wide = max((m.index_dtype for m in converted), key=lambda d: d.itemsize)
    return [with_index_dtype(m, wide) for m in converted]


def entries_in(matrix: Matrix | Assembled, dtype: np.dtype[Any]) -> Csr:
    """Return a matrix, or an expression of identities and permutations, as a Csr of ``dtype``.

    The factors of an expression are Python numbers. They are converted to ``dtype`` directly,
    without rounding to the dtype of the expression first.
    """
    if isinstance(matrix, Matrix):
        result: Csr = matrix.asformat("csr").astype(dtype)
        return result
    return matrix.astype(dtype)._entries()


def _as_narrow(result: Csr, left: Matrix | Assembled, right: Matrix | Assembled) -> Csr:
    """Return a result in the 16-bit dtype of both operands, if they have the same one."""
    narrow = is_narrow(left.dtype) and left.dtype == right.dtype
    return result.astype(left.dtype) if narrow else result


def in_double_if_long_rows(a: Csr, b: Csr) -> tuple[Csr, Csr]:
    """Return the factors of a product, in double precision if ``a`` has long rows.

    The entries of a row of ``a`` are the terms of a sum; long sums of single precision lose digits.
    """
    if a.nnz <= LONG or a.dtype == double_dtype(a.dtype) or not a.executor.has_double:
        return a, b
    if not a._pattern.get(_HAS_LONG_ROW, lambda: has_long_row(a.indptr)):  # the host waits once
        return a, b
    dtype = double_dtype(a.dtype)
    return a.astype(dtype), b.astype(dtype)


def matmul(left: Matrix | Assembled, right: Matrix | Assembled) -> Csr:
    """Return the sparse product as a Csr with sorted rows; entries that cancel stay as zeros."""
    left, right = brought_together("the product", left, right)
    if left.shape[1] != right.shape[0]:
        raise ShapeMismatch(
            f"no product of {left.shape[0]}x{left.shape[1]} and "
            f"{right.shape[0]}x{right.shape[1]}: {left.shape[1]} columns meet "
            f"{right.shape[0]} rows"
        )
    if both_exact(left, right):
        exact = exact_matmul(left.tocsr(), right.tocsr())
        return exact._following(left, right)
    a, b = _as_csr(left, right)
    wide_a, wide_b = in_double_if_long_rows(a, b)
    indptr, indices, data = a.executor.run(structure.csr_matmul, wide_a, wide_b)
    data = rounded_to(a.executor, data, a.dtype)
    made = Csr._from_arrays(a.executor, (left.shape[0], right.shape[1]), data, indices, indptr)
    return _as_narrow(known_canonical(made._following(left, right)), left, right)


def add(
    left: Matrix | Assembled,
    right: Matrix | Assembled,
    alpha: complex = 1.0,
    beta: complex = 1.0,
) -> Csr:
    """Return ``alpha * left + beta * right`` as a Csr with sorted rows."""
    left, right = brought_together("the sum", left, right)
    left.executor.refuse_capture(MAKES)
    if left.shape != right.shape:
        raise ShapeMismatch(
            f"no sum of {left.shape[0]}x{left.shape[1]} and {right.shape[0]}x{right.shape[1]}"
        )
    if both_exact(left, right) and alpha in (1, -1) and beta in (1, -1):
        exact = exact_add(left.tocsr(), right.tocsr(), int(alpha.real), int(beta.real))
        return exact._following(left, right)
    a, b = _as_csr(left, right)
    if alpha == 1 and beta in (1, -1) and same_pattern(a, b) and order_of(a) == (0, 0):
        made = of_pattern(a, entry_sums(a.executor, a.data, b.data, int(beta.real)))
    else:
        indptr, indices, data = a.executor.run(structure.csr_add, a, b, alpha, beta)
        made = Csr._from_arrays(a.executor, left.shape, data, indices, indptr)
    return _as_narrow(known_canonical(made._following(left, right)), left, right)


product_of_matrices.provide(matmul)
sum_of_matrices.provide(add)
