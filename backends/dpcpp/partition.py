"""Partition the rows of a CSR matrix for work-groups of one work-item, on the host."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from .place import host_address
from .shim import check, shim

Indices = np.ndarray[Any, np.dtype[Any]]

#: Cost of a row besides its entries (indptr, y, loop end), in units of the cost of an entry.
ROW_COST = 2

#: Only rows with more entries may be split among several parts.
CUT_ROW = 4096


def cuts(indptr: Indices, parts: int) -> tuple[Indices, Indices]:
    """Return the first row and the first entry of each part, and the end of the last part.

    Parts have equal shares of the cost of entries and rows. Only rows longer than :data:`CUT_ROW`
    are cut inside.
    """
    rows = indptr.size - 1
    cost = indptr.astype(np.int64) + ROW_COST * np.arange(rows + 1)
    targets = cost[0] + (cost[-1] - cost[0]) * np.arange(parts + 1) // parts
    row = np.maximum(np.searchsorted(cost, targets, side="right") - 1, 0)
    row[0], row[-1] = 0, rows
    entry = indptr[row].astype(np.int64)
    for part in range(1, parts):
        r = row[part]
        if r < rows and indptr[r + 1] - indptr[r] > CUT_ROW:
            inside = entry[part] + (targets[part] - cost[r])
            entry[part] = min(inside, int(indptr[r + 1]))
            if entry[part] == indptr[r + 1]:
                row[part] = r + 1
    return row, np.maximum.accumulate(entry)


def is_cut(indptr: Indices, row: Indices, entry: Indices) -> bool:
    """Return whether any part begins inside of a row."""
    inner = row[1:-1]
    return bool(np.any(entry[1:-1] > indptr[inner]))


class Patterns(NamedTuple):
    """Runs of adjacent rows with equal column offsets (column - row); all arrays are int32.

    Run ``q`` has the rows from ``run_end[q - 1]`` to ``run_end[q] - 1``, and the offsets
    ``offsets[pattern_ptr[p]:pattern_ptr[p + 1]]`` with ``p = run_pattern[q]``.
    """

    run_end: Indices
    run_pattern: Indices
    pattern_ptr: Indices
    offsets: Indices


def find_patterns(indptr: Indices, indices: Indices) -> Patterns | None:
    """Return the patterns of a matrix; None if runs are too short or patterns too many to pay.

    Both arrays are C-contiguous and of one dtype, int32 or int64. The search is in
    ``backends/cpu``.

    Both arrays are C-contiguous and of one dtype, int32 or int64. ``backends/cpu`` has the search.
    """
    rows, most = indptr.size - 1, np.iinfo(np.int32).max
    if rows == 0 or rows > most:
        return None
    if indices.dtype.itemsize > 4 and int(indices.max(initial=0)) > most:
        return None
    library, found = shim(), ctypes.c_void_p()
    operands = host_address(indptr), host_address(indices), indices.dtype.itemsize
    check(library.wl_patterns_new(rows, *operands, found), "the search for row patterns failed")
    if not found:
        return None
    sizes = (ctypes.c_int64 * 3)()
    library.wl_patterns_sizes(found, sizes)
    runs, patterns, offsets = sizes
    arrays = np.empty(2 * runs + patterns + offsets, np.int32)
    library.wl_patterns_take(found, host_address(arrays))
    return Patterns(*np.split(arrays, np.cumsum([runs, runs, patterns])))
