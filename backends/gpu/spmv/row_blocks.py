"""Row blocks of CSR-Adaptive: whole rows that fit into a work-group, or a part of a longer row.

Sums, searches and gathers on the device find them. Each row block has two indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...simt import kernels as simt
from ..base import GpuExecutor
from ..reductions import some
from . import on_device
from .measured import is_planned_on_host

if TYPE_CHECKING:
    from types import ModuleType

    from ....core.executor import Array

#: Upper bound of a block's shared memory for products, in bytes: four products per work-item.
SHARED_BYTES = 4 * 8 * simt.csr_adaptive.block
#: Keep a matrix and its vectors in the cache if they take at most this fraction of the device's
#: cache. Loads that keep them gained 16 % at 36 MB and 10 % at 42, lost 1 % at 47 and 6 % at 102
#: (H200, 60 MB).
RESIDENT_PART_OF_CACHE = 0.75


def most_entries(itemsize: int) -> int:
    """Return the largest number of entries per row block; as in ``csr_adaptive.hpp``."""
    return min(SHARED_BYTES // itemsize, SHARED_BYTES // 8)


class RowBlocks:
    """The arrays that ``csr_adaptive`` reads besides the matrix.

    Parameters
    ----------
    indptr : array
        Row pointers of the matrix, which has at least one row.
    dtype : numpy.dtype
        The dtype of the values.
    nbytes : int
        Size in bytes of the matrix and both vectors.

    Attributes
    ----------
    count : int
        Number of row blocks.
    row, entry : array
        The first row and the first entry of each row block, and the ends. The row is ``~row`` if
        the row block is a part of one row.
    cut : bool
        Whether a row consists of several row blocks.
    kept : bool
        Whether caches keep the matrix from one product to the next.
    """

    def __init__(
        self, executor: GpuExecutor, indptr: Array, dtype: np.dtype[Any], nbytes: int
    ) -> None:
        rows, block = int(indptr.size) - 1, simt.csr_adaptive.block
        most = most_entries(dtype.itemsize)
        if is_planned_on_host(executor, rows, dtype, indptr.dtype):
            self.row, self.entry, self.cut = executor.planned(
                rows, cut_rows_and_test, indptr, most=most, most_rows=block
            )
        else:
            self.row, self.entry, self.cut = on_device.row_blocks(executor, indptr, most, block)
        self.count = int(self.row.size) - 1
        self.kept = nbytes <= RESIDENT_PART_OF_CACHE * executor.device.cache_bytes

    @property
    def nbytes(self) -> int:
        """Size of the lists in bytes."""
        return int(self.row.nbytes + self.entry.nbytes)


def cut_rows_and_test(
    xp: ModuleType, indptr: Array, most: int, most_rows: int
) -> tuple[Any, Any, bool]:
    """Return the result of :func:`cut_rows`, and whether a row is cut."""
    row, entry = cut_rows(xp, indptr, most, most_rows)
    return row, entry, some(row < 0)


def cut_rows(xp: ModuleType, indptr: Array, most: int, most_rows: int) -> tuple[Any, Any]:
    """Return the first rows and entries of row blocks.

    A row block takes as many whole rows as ``most`` entries and ``most_rows`` rows allow, but at
    least one. First, the end of a row block that would begin at each row is computed for all rows
    at once. Jumps of 1, 2, 4, ... row blocks then find the rows that begin one. Finally, rows of
    more than ``most`` entries are cut.

    Examples
    --------
    >>> import numpy as np
    >>> row, entry = cut_rows(np, np.array([0, 3, 6, 20, 21]), most=8, most_rows=100)
    >>> row.tolist(), entry.tolist()
    ([0, -3, -3, 3, 4], [0, 6, 14, 20, 21])
    """
    pointers = indptr.astype(np.int64)
    m = int(pointers.size) - 1
    rows = xp.arange(m + 1, dtype=np.int64)
    jump = xp.searchsorted(pointers, pointers + most, side="right") - 1
    jump = xp.minimum(xp.maximum(xp.minimum(jump, rows + most_rows), rows + 1), m)
    begins = xp.zeros(1, np.int64)
    while int(jump[0]) < m:
        begins = xp.concatenate([begins, jump[begins]])
        jump = jump[jump]
    begins = xp.unique(begins)
    begins = begins[begins < m]
    length = pointers[begins + 1] - pointers[begins]
    parts = xp.maximum((length + (most - 1)) // most, 1)
    ends = xp.cumsum(parts)
    block = xp.arange(int(ends[-1]), dtype=np.int64)
    of = xp.searchsorted(ends, block, side="right")
    part = block - (ends - parts)[of]
    first = xp.where(parts[of] > 1, ~begins[of], begins[of])
    entry = pointers[begins[of]] + part * most
    row = xp.concatenate([first, rows[-1:]])
    return row.astype(indptr.dtype), xp.concatenate([entry, pointers[-1:]]).astype(indptr.dtype)
