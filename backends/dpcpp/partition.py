"""How the rows of a CSR matrix are shared by work-groups of one work-item; found on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Indices = np.ndarray[Any, np.dtype[Any]]

#: What a row costs besides its entries, in entries: its indptr, its y and the end of its loop.
ROW_COST = 2

#: A longer row may be shared by several parts.
CUT_ROW = 4096

#: Rows that repeat their neighbour's offsets, on average of a run: below, reading the table and
#: ending the loops costs what the indices did (measured for the omp backend).
MIN_ROWS_PER_RUN = 4

#: The table of offsets must stay in half of a first-level cache.
MAX_OFFSETS = 2048

#: So many rows are looked at first: most matrices without structure show it there.
FIRST_ROWS = 4096


def cuts(indptr: Indices, parts: int) -> tuple[Indices, Indices]:
    """Return the row and the entry that each part begins with, and the end of the last.

    Parts have equal shares of entries and rows. Only rows longer than :data:`CUT_ROW` are cut
    inside.
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
    """Runs of rows with one set of column offsets (column - row); all arrays are int32.

    Run ``q`` has the rows from ``run_end[q - 1]`` up to ``run_end[q]``, and the offsets
    ``offsets[pattern_ptr[p]:pattern_ptr[p + 1]]`` with ``p = run_pattern[q]``.
    """

    run_end: Indices
    run_pattern: Indices
    pattern_ptr: Indices
    offsets: Indices


def find_patterns(indptr: Indices, indices: Indices) -> Patterns | None:
    """Return the patterns of a matrix; None where they would not pay: short runs, many patterns."""
    rows = indptr.size - 1
    if rows == 0 or max(rows, int(indices.max(initial=0))) > np.iinfo(np.int32).max:
        return None
    if rows > 2 * FIRST_ROWS:
        head = indptr[: FIRST_ROWS + 1]
        if _run_starts(head, indices[: head[-1]]).size * MIN_ROWS_PER_RUN > FIRST_ROWS:
            return None
    starts = _run_starts(indptr, indices)
    if starts.size * MIN_ROWS_PER_RUN > rows:
        return None
    known: dict[bytes, int] = {}
    pattern_ptr = [0]
    offsets: list[Indices] = []
    run_pattern = np.empty(starts.size, np.int32)
    for run, row in enumerate(starts.tolist()):
        of_row = (indices[indptr[row] : indptr[row + 1]] - row).astype(np.int32)
        key = of_row.tobytes()
        number = known.setdefault(key, len(known))
        if number == len(offsets):
            offsets.append(of_row)
            pattern_ptr.append(pattern_ptr[-1] + of_row.size)
            if pattern_ptr[-1] > MAX_OFFSETS:
                return None
        run_pattern[run] = number
    return Patterns(
        np.append(starts[1:], rows).astype(np.int32),
        run_pattern,
        np.array(pattern_ptr, np.int32),
        np.concatenate(offsets) if offsets else np.empty(0, np.int32),
    )


def _run_starts(indptr: Indices, indices: Indices) -> Indices:
    """Return the rows that do not have their predecessor's offsets, shifted by one."""
    lengths = np.diff(indptr)
    differs = np.empty(lengths.size, bool)
    differs[0] = True
    differs[1:] = lengths[1:] != lengths[:-1]
    # entry e of a row against entry e of the row before, where both are of one length
    row = np.repeat(np.arange(lengths.size), lengths)
    entry = np.flatnonzero(~differs[row])
    moved = indices[entry] != indices[entry - lengths[row[entry]]] + 1
    differs[row[entry[moved]]] = True
    return np.flatnonzero(differs)
