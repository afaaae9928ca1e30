"""Lists of a pattern's entries by panels of 8 rows and slabs of columns, for tensor cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....core.executor import Array
from ....core.store import Key
from ...gpu.products.sddmm_flat import rows_of

if TYPE_CHECKING:
    from types import ModuleType

    from ....core.formats.csr import Csr

#: Rows per panel and entries per batch, as in ``slab_entries.hpp``.
PANEL, BATCH = 8, 16
#: Bits of an entry's row in its panel, below the offset of its dense row; as in the same file.
ROW_BITS = 4
#: The position of each entry in its batch, as ``place_in_batch`` in the same file.
PLACES = np.array([e % 8 // 2 * 4 + e // 8 * 2 + e % 2 for e in range(BATCH)])
#: Classes of columns: the dense rows of eight columns of different classes use different banks.
CLASSES = 8
#: The bit of an entry that marks the last batch of its list; as in the same file.
LAST = 2**31
#: Empty batches after the last one: kernels prefetch it before they know that the list ends.
AHEAD = 1


class SlabLists(NamedTuple):
    """The entries of a pattern for tensor cores.

    Attributes
    ----------
    pairs, slabs, height : int
        Numbers of pairs of panels and of slabs, and columns per slab.
    batches : int
        Number of batches of entries.
    starts : array, shape (pairs + 1,)
        The first batch of each pair, and of an empty pair at the end; int32. A pair has one list
        per slab and panel, each of at least one batch.
    entries : array, shape (16 (batches + 1),)
        For each entry, the byte offset of its dense row in the slab and, in its ``ROW_BITS``, its
        row in the panel; row 8 is padding. ``LAST`` marks all entries of a batch. uint32.
    """

    pairs: int
    slabs: int
    height: int
    batches: int
    starts: Array
    entries: Array


def places_of(rows: Array, width: int) -> Array:
    """Return the offsets of dense rows of ``width`` values; see ``chunk_at`` in ``tile_rows.hpp``.

    Examples
    --------
    >>> int(places_of(np.array(9), 64)) == 9 * 128 + 16
    True
    """
    turn = rows // 2 % 4 if width == 32 else rows % 8
    return rows * (2 * width) + turn * 16


def make_lists(
    xp: ModuleType, rows: Array, columns: Array, shape: tuple[int, int], height: int, width: int
) -> SlabLists:
    """Return the lists of entries.

    Eight adjacent entries of a batch have different classes if possible. The first entries of the
    classes are in the first eight positions, the second ones in the next eight, and so on;
    remaining entries fill the gaps. Therefore, the dense rows of eight adjacent entries are mostly
    in different banks, and the dense rows of two adjacent entries nearly always.

    Parameters
    ----------
    xp : module
        NumPy, or a module with its functions for the arrays of a device.
    rows, columns : array, shape (nnz,)
        Rows and columns of the entries, in any order; duplicates are allowed.
    shape : tuple of int
        Shape of the matrix.
    height : int
        Columns per slab, a multiple of 8.
    width : int
        Numbers per dense row, 32 or 64.
    """
    pairs, slabs = -(-shape[0] // (2 * PANEL)), max(-(-shape[1] // height), 1)
    of_pair, payloads = 2 * slabs, PANEL * height
    lists = (pairs + 1) * of_pair
    rows, columns = rows.astype(np.int64), columns.astype(np.int64)
    in_slab = columns % height
    # Two adjacent entries have their 64-byte halves in different banks.
    rank = in_slab % 8 if width == 32 else in_slab % 4 * 2 + in_slab // 4 % 2
    of_list = rows // (2 * PANEL) * of_pair + columns // height * 2 + rows // PANEL % 2
    key = xp.sort(((of_list * CLASSES + rank) * PANEL + rows % PANEL) * height + in_slab)
    cell, payload = key // payloads, key % payloads
    of_list, rank = cell // CLASSES, cell % CLASSES
    firsts = xp.searchsorted(of_list, xp.arange(lists + 1))
    ends = xp.cumsum(xp.maximum(-(-(firsts[1:] - firsts[:-1]) // BATCH), 1))
    starts = xp.concatenate([xp.zeros(1, ends.dtype), ends])
    batches = int(ends[-1])
    # Pad with a row of the slot's class, which causes no bank conflict.
    slot = xp.arange((batches + AHEAD) * BATCH)
    filling = slot % CLASSES if width == 32 else slot % CLASSES // 2 + slot % 2 * 4
    made = places_of(filling, width) + PANEL
    level = xp.arange(int(key.size)) - xp.searchsorted(cell, cell)
    fits = level < 2 * (ends[of_list] - starts[of_list])
    place = (starts[of_list] * 2 + level) * CLASSES + rank
    entry = places_of(payload % height, width) + payload // height
    made[place[fits]] = entry[fits]
    rest = xp.flatnonzero(~fits)
    if rest.size:
        free = xp.ones(batches * BATCH, bool)
        free[place[fits]] = False
        free = xp.flatnonzero(free)
        its_list = of_list[rest]
        # Fill gaps from the end of a list, where entries are few; entries of a level are adjacent.
        behind = xp.searchsorted(free, ends[its_list] * BATCH)
        order = xp.argsort(its_list * (int(level.max()) + 1) + level[rest])
        number = xp.arange(int(rest.size)) - xp.searchsorted(its_list, its_list)
        made[free[behind - 1 - number]] = entry[rest[order]]
    last = xp.zeros(batches + AHEAD, np.int64)
    last[ends - 1] = LAST
    made = made + last[slot // BATCH]
    entries = xp.empty(int(slot.size), np.uint32)
    entries[slot // BATCH * BATCH + xp.asarray(PLACES)[slot % BATCH]] = made.astype(np.uint32)
    starts = starts[:-1:of_pair].astype(np.int32)
    return SlabLists(pairs, slabs, height, batches, starts, entries)


LISTS: Key[SlabLists] = Key("entries by panels and slabs")
TRANSPOSED: Key[SlabLists] = Key("entries of the transposed pattern by panels and slabs")


def lists_of(xp: ModuleType, A: Csr, height: int, width: int) -> SlabLists:
    """Return the lists of a CSR matrix, made once per pattern."""
    return A._pattern.get(
        LISTS.of_size(height, width),
        lambda: make_lists(xp, rows_of(xp, A.indptr, A.nnz), A.indices, A.shape, height, width),
    )


def transposed_lists_of(xp: ModuleType, A: Csr, height: int, width: int) -> SlabLists:
    """Return the lists of the transposed pattern, made once."""
    return A._pattern.get(
        TRANSPOSED.of_size(height, width),
        lambda: make_lists(
            xp, A.indices, rows_of(xp, A.indptr, A.nnz), A.shape[::-1], height, width
        ),
    )
