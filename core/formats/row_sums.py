"""Values in a lower storage precision that preserve the sums of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from ..dtypes import index_dtype, storage_dtype
from ..small_values import as_dtype, entry_sums, for_zero_tests
from .csr import Csr
from .reductions import row_totals
from .rowwise import with_index_dtype
from .stored import rounded

if TYPE_CHECKING:
    from ..executor import Array


def rounded_with_row_sums(A: Csr, dtype: DTypeLike, *, on_diagonal: bool) -> Csr:
    """Return a matrix to store in ``dtype`` whose row sums are those of ``A``.

    The rounding error of a row becomes an additional entry of the row, at a position that already
    has one: products add both. Therefore nearly constant vectors are multiplied as by ``A``, to
    twice the digits of ``dtype``. Rows without a rounding error get no entry.

    Parameters
    ----------
    A : Csr, shape (m, n)
        A matrix with sorted rows.
    dtype : dtype
        The storage dtype of the values.
    on_diagonal : bool
        Whether the additional entries are on the diagonal, which keeps a symmetric matrix
        symmetric. If not, they are in the first stored column of each row.

    Returns
    -------
    Csr, shape (m, n)
        A matrix with the dtype of ``A``; ``.stored(dtype)`` rounds the additional entries.

    Raises
    ------
    UnsupportedDtype
        If values with the dtype of ``A`` cannot be stored in ``dtype``.
    InvalidArgument
        If a value is too large for ``dtype``.
    """
    wanted = storage_dtype(dtype, A.dtype)
    if wanted == A.dtype or A.nnz == 0:
        return A
    kept = A._with_data(as_dtype(A.executor, rounded(A.executor, A.data, wanted), A.dtype))
    taken = row_totals(A._with_data(entry_sums(A.executor, A.data, kept.data, -1)))
    return (
        _with_entries(kept, taken, on_diagonal)
        if int((for_zero_tests(A.executor, taken) != 0).sum())
        else kept
    )


def _with_entries(A: Csr, values: Array, on_diagonal: bool) -> Csr:
    """Return ``A`` with one more entry at the end of each row with a nonzero in ``values``."""
    xp = A.executor.xp
    further = (for_zero_tests(A.executor, values) != 0).astype(np.int64)
    count = A.nnz + int(further.sum())
    A = with_index_dtype(A, index_dtype(count, A.index_dtype))
    dtype = A.index_dtype
    # Cumulative number of additional entries before each row.
    shift = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(further)]).astype(dtype)
    indptr = A.indptr + shift
    rows = xp.flatnonzero(further)
    row_of_entry = xp.searchsorted(A.indptr[1:], xp.arange(A.nnz, dtype=dtype), side="right")
    places = xp.arange(A.nnz, dtype=dtype) + shift[row_of_entry]
    ends = indptr[1:][rows] - 1
    data = xp.empty(count, A.dtype)
    indices = xp.empty(count, dtype)
    data[places], data[ends] = A.data, values[rows]
    indices[places] = A.indices
    indices[ends] = rows.astype(dtype) if on_diagonal else A.indices[A.indptr[:-1][rows]]
    return Csr._from_arrays(A.executor, A.shape, data, indices, indptr)
