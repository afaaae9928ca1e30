"""Products and sums of matrices, computed at once."""

from __future__ import annotations

from ..assembled import Assembled
from ..dtypes import common_dtype
from ..errors import ShapeMismatch
from ..executor import brought_together
from ..operations import structure
from .base import Matrix
from .csr import Csr
from .rowwise import known_canonical


def _as_csr(*matrices: Matrix | Assembled) -> list[Csr]:
    """Return the matrices as Csr of one dtype and one index dtype."""
    dtype = common_dtype(*(m.dtype for m in matrices))
    converted: list[Csr] = [m.asformat("csr").astype(dtype) for m in matrices]
    wide = max((m.index_dtype for m in converted), key=lambda d: d.itemsize)
    return [_with_index_dtype(m, wide) for m in converted]


def _with_index_dtype(matrix: Csr, dtype: object) -> Csr:
    if matrix.index_dtype == dtype:
        return matrix
    return Csr._from_arrays(
        matrix.executor,
        matrix.shape,
        matrix.data,
        matrix.indices.astype(dtype),
        matrix.indptr.astype(dtype),
    )


def matmul(left: Matrix | Assembled, right: Matrix | Assembled) -> Csr:
    """Return the sparse product as a Csr with sorted rows; cancellations stay as zeros."""
    left, right = brought_together("the product", left, right)
    if left.shape[1] != right.shape[0]:
        raise ShapeMismatch(
            f"no product of {left.shape[0]}x{left.shape[1]} and "
            f"{right.shape[0]}x{right.shape[1]}: {left.shape[1]} columns meet "
            f"{right.shape[0]} rows"
        )
    a, b = _as_csr(left, right)
    indptr, indices, data = a.executor.run(structure.csr_matmul, a, b)
    made = Csr._from_arrays(a.executor, (left.shape[0], right.shape[1]), data, indices, indptr)
    return known_canonical(made._following(left, right))


def add(
    left: Matrix | Assembled,
    right: Matrix | Assembled,
    alpha: complex = 1.0,
    beta: complex = 1.0,
) -> Csr:
    """Return ``alpha * left + beta * right`` as a Csr with sorted rows."""
    left, right = brought_together("the sum", left, right)
    if left.shape != right.shape:
        raise ShapeMismatch(
            f"no sum of {left.shape[0]}x{left.shape[1]} and {right.shape[0]}x{right.shape[1]}"
        )
    a, b = _as_csr(left, right)
    indptr, indices, data = a.executor.run(structure.csr_add, a, b, alpha, beta)
    made = Csr._from_arrays(a.executor, left.shape, data, indices, indptr)
    return known_canonical(made._following(left, right))
