"""Shares of a CSR matrix: as many whole rows as a block multiplies at once, or parts of long rows.

They are found on the device, with sums, searches and gathers alone, and have two indices each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simt import kernels as simt
from ..base import GpuExecutor

#: Bytes of the shared memory of a block that products take at most: four of each work-item.
ROOM_BYTES = 4 * 8 * simt.csr_shares.block
#: Share of the device's cache that a matrix and its vectors may take to stay there. Loads that keep
#: them gained 16 % at 36 MB and 10 % at 42, lost 1 % at 47 and 6 % at 102 (H200, 60 MB).
KEPT = 0.75


def room(itemsize: int) -> int:
    """Return how many entries a share has at most; the same as in ``shares.hpp``."""
    return min(ROOM_BYTES // itemsize, ROOM_BYTES // 8)


class Shares:
    """What ``csr_shares`` needs to know of a matrix besides its arrays.

    Parameters
    ----------
    indptr : array
        Where its rows begin; there is one at least.
    itemsize : int
        Bytes of a value.
    nbytes : int
        Of the matrix and of both vectors.

    Attributes
    ----------
    count : int
        How many shares there are.
    row, entry : array
        The first row and the first entry of each, and the ends; the row is ``~row`` where the share
        is a part of one.
    cut : bool
        Whether a row has several shares.
    kept : bool
        Whether caches hold the matrix from one product to the next.
    """

    def __init__(self, executor: GpuExecutor, indptr: Any, itemsize: int, nbytes: int) -> None:
        self.row, self.entry, self.cut = executor.planned(
            int(indptr.size),
            deal_and_look,
            indptr,
            most=room(itemsize),
            most_rows=simt.csr_shares.block,
        )
        self.count = int(self.row.size) - 1
        self.kept = nbytes <= KEPT * executor.device.cache_bytes

    @property
    def nbytes(self) -> int:
        """Bytes of the lists."""
        return int(self.row.nbytes + self.entry.nbytes)


def deal_and_look(xp: Any, indptr: Any, most: int, most_rows: int) -> tuple[Any, Any, bool]:
    """Return what :func:`deal` does, and whether a row is cut."""
    row, entry = deal(xp, indptr, most, most_rows)
    return row, entry, bool((row < 0).any())


def deal(xp: Any, indptr: Any, most: int, most_rows: int) -> tuple[Any, Any]:
    """Return the first rows and entries of shares of at most so many entries and rows.

    A share takes as many whole rows as it may, and one at least. Where the share ends that begins
    at a row is known for all rows at once; which rows begin one is found by jumps of 1, 2, 4, ...
    shares. A row that is longer than a share is then cut.

    Examples
    --------
    >>> import numpy as np
    >>> row, entry = deal(np, np.array([0, 3, 6, 20, 21]), most=8, most_rows=100)
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
    share = xp.arange(int(ends[-1]), dtype=np.int64)
    of = xp.searchsorted(ends, share, side="right")
    part = share - (ends - parts)[of]
    first = xp.where(parts[of] > 1, ~begins[of], begins[of])
    entry = pointers[begins[of]] + part * most
    row = xp.concatenate([first, rows[-1:]])
    return row.astype(indptr.dtype), xp.concatenate([entry, pointers[-1:]]).astype(indptr.dtype)
