"""Functions of the entries of two matrices, applied to pairs at equal positions.

The kernel ``rows.merge`` finds, for each position in the union of the patterns, the entry of each
matrix. Values of any dtype are then gathered, and array functions of the executor combine them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..operations import rows
from .csr import Csr
from .rowwise import (
    canonical_rows,
    counted,
    known_canonical,
    of_pattern,
    row_bounds,
    same_pattern,
    with_index_dtype,
)

if TYPE_CHECKING:
    from ..executor import Array
    from .base import Matrix


class Paired(NamedTuple):
    """The union of two patterns, with the values of both matrices; 0 where there is no entry.

    Attributes
    ----------
    pattern : Csr
        A matrix with the union of the patterns; its values have no meaning.
    first, second : array, shape (nnz,)
        The values of both matrices, each in its own dtype; read-only.
    """

    pattern: Csr
    first: Array
    second: Array

    def matrix(self, values: Array) -> Csr:
        """Return the matrix with this pattern and these values."""
        return known_canonical(self.pattern._with_data(values))


def paired(left: Matrix, right: Matrix) -> Paired:
    """Return the pairs of entries of two matrices with equal shapes on one executor."""
    a, b = canonical_rows(left), canonical_rows(right)
    if same_pattern(a, b):
        return Paired(of_pattern(a, a.data), a.data, b.data)
    if a.index_dtype != b.index_dtype:
        a, b = (with_index_dtype(csr, np.int64) for csr in (a, b))
    executor = a.executor
    sides = (*row_bounds(a), a.indices, *row_bounds(b), b.indices)
    made = counted(a, a.shape[0], rows.count_union, rows.merge, *sides)
    dtype = made.indptr.dtype
    indices, first, second = (executor.allocate((made.entries,), dtype) for _ in range(3))
    executor.run(rows.merge, *made.arguments, made.indptr, indices, first, second)
    pattern = Csr._from_arrays(
        executor, a.shape, executor.zeros((made.entries,), np.float32), indices, made.indptr
    )
    return Paired(pattern, _values(a, first), _values(b, second))


def _values(csr: Csr, entries: Array) -> Array:
    """Return the values of entries; 0 where there is no entry."""
    xp = csr.executor.xp
    if csr.nnz == 0:
        return xp.zeros(int(entries.size), csr.dtype)
    values = csr.data[xp.maximum(entries, 0)]
    return xp.where(entries >= 0, values, xp.zeros((), csr.dtype))
