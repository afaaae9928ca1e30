"""Entries of a pattern by panels of 8 rows and slabs of columns, in batches for tensor cores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.algorithm import Unsuited
from ....core.executor import Array
from ....core.store import Key
from ...gpu.products.sddmm_flat import rows_of

#: Rows of a panel, and entries of a batch. As in ``slab_entries.hpp``.
PANEL, BATCH = 8, 16
#: Bits of an entry's row in its panel, below those of the place of its dense row. As there.
ROW_BITS = 4
#: Where each entry of a batch is stored. As ``place_in_batch`` there.
PLACES = np.array([e % 8 // 2 * 4 + e // 8 * 2 + e % 2 for e in range(BATCH)])
#: Classes of columns: chunks of dense rows of eight of them are in different banks.
CLASSES = 8
#: The bit of an entry that says that its batch is the last one of its list. As there.
LAST = 2**31
#: Empty batches behind the last one: kernels ask for it before they know that there is none.
AHEAD = 1


class Lists(NamedTuple):
    """The entries of a pattern for tensor cores.

    Attributes
    ----------
    pairs, slabs, height : int
        How many pairs of panels and slabs there are, and the columns of a slab.
    batches : int
        How many batches of entries there are.
    starts : array, shape (pairs + 1,)
        The first batch of each pair, and of an empty pair behind them; int32. A pair has a list for
        each slab and each of its panels, of one batch or more.
    entries : array, shape (16 (batches + 1),)
        For each entry the place of its dense row in the slab, in bytes, and in its ``ROW_BITS`` the
        row in the panel; 8 where a batch is only filled. ``LAST`` is said of whole batches. uint32.
    """

    pairs: int
    slabs: int
    height: int
    batches: int
    starts: Array
    entries: Array


def places_of(rows: Array, width: int) -> Array:
    """Return where dense rows of so many numbers begin; see ``chunk_at`` in ``tile_rows.hpp``.

    Examples
    --------
    >>> int(places_of(np.array(9), 64)) == 9 * 128 + 16
    True
    """
    if width == 128:
        return rows // 8 * 2048 + rows % 8 * (128 + 16)
    turn = rows // 2 % 4 if width == 32 else rows % 8
    return rows * (2 * width) + turn * 16


def make_lists(
    xp: Any, rows: Array, columns: Array, shape: tuple[int, int], height: int, width: int
) -> Lists:
    """Return the lists of entries.

    Entries of a list are dealt out so that neighbours are of different classes: of each class the
    first one, then of each the second one, and so on. Eight neighbours' dense rows are then mostly
    in different banks, and those of two neighbours nearly always.

    Parameters
    ----------
    xp : module
        NumPy, or what has its functions for the arrays of a device.
    rows, columns : array, shape (nnz,)
        Of the entries, in any order; an entry may be there twice.
    shape : tuple of int
        Of the matrix.
    height : int
        Columns of a slab, a multiple of 8.
    width : int
        Numbers of a dense row: 32, 64 or 128.

    Raises
    ------
    Unsuited
        If the pattern is too large for 63 bits.
    """
    pairs, slabs = -(-shape[0] // (2 * PANEL)), max(-(-shape[1] // height), 1)
    of_pair, payloads = 2 * slabs, PANEL * height
    lists = (pairs + 1) * of_pair
    too_large = Unsuited("the matrix has too many panels and slabs")
    if lists * CLASSES * payloads >= 2**63:
        raise too_large
    rows, columns = rows.astype(np.int64), columns.astype(np.int64)
    in_slab = columns % height
    # Two neighbours have their halves of 64 bytes in different banks.
    rank = in_slab % 8 if width == 32 else in_slab % 4 * 2 + in_slab // 4 % 2
    of_list = rows // (2 * PANEL) * of_pair + columns // height * 2 + rows // PANEL % 2
    cell = of_list * CLASSES + rank
    key = xp.sort((cell * PANEL + rows % PANEL) * height + in_slab)
    cell, payload = key // payloads, key % payloads
    level = xp.arange(int(key.size)) - xp.searchsorted(cell, cell)
    levels = int(level.max()) + 1 if key.size else 1
    if lists * levels * CLASSES * payloads >= 2**63:
        raise too_large
    key = (cell // CLASSES * levels + level) * CLASSES + cell % CLASSES
    key = xp.sort(key * payloads + payload)
    of_list, payload = key // (payloads * CLASSES * levels), key % payloads
    firsts = xp.searchsorted(of_list, xp.arange(lists + 1))
    counts = firsts[1:] - firsts[:-1]
    ends = xp.cumsum(xp.maximum(-(-counts // BATCH), 1))
    starts = xp.concatenate([xp.zeros(1, ends.dtype), ends])
    batches = int(ends[-1])
    if batches >= 2**31 // BATCH:
        raise Unsuited("the pattern has too many entries")
    # Every slot of a list: those behind its end repeat the last entry, as of no row.
    slot = xp.arange(batches * BATCH)
    batch = slot // BATCH
    its_list = xp.searchsorted(ends, batch, side="right")
    number, count = slot - starts[its_list] * BATCH, counts[its_list]
    if key.size:
        source = firsts[its_list] + xp.maximum(xp.minimum(number, count - 1), 0)
        payload = payload[xp.minimum(source, int(key.size) - 1)]
    else:
        payload = xp.zeros(slot.size, np.int64)
    row = xp.where(number < count, payload // height, PANEL)
    last = xp.where(batch == ends[its_list] - 1, LAST, 0)
    entries = xp.full((batches + AHEAD) * BATCH, PANEL + LAST, np.uint32)
    of_batch = batch * BATCH + xp.asarray(PLACES)[slot % BATCH]
    entries[of_batch] = (places_of(payload % height, width) + row + last).astype(np.uint32)
    starts = starts[: -1 : of_pair].astype(np.int32)
    return Lists(pairs, slabs, height, batches, starts, entries)


LISTS: Key[Lists] = Key("entries by panels and slabs")
TRANSPOSED: Key[Lists] = Key("entries of the transposed pattern by panels and slabs")


def lists_of(xp: Any, A: Any, height: int, width: int) -> Lists:
    """Return the lists of a matrix by compressed rows, made once for its pattern."""
    return A._pattern.get(
        LISTS.of_size(height, width),
        lambda: make_lists(xp, rows_of(xp, A.indptr, A.nnz), A.indices, A.shape, height, width),
    )


def transposed_lists_of(xp: Any, A: Any, height: int, width: int) -> Lists:
    """Return the lists of the transposed pattern, made once."""
    return A._pattern.get(
        TRANSPOSED.of_size(height, width),
        lambda: make_lists(
            xp, A.indices, rows_of(xp, A.indptr, A.nnz), A.shape[::-1], height, width
        ),
    )
