"""Cut patterns into tiles of 128 x 64 positions; tiles without entries are omitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core.algorithm import Unsuited
from ....core.executor import Array
from ....core.store import Key
from ...gpu.products.sddmm_flat import rows_of
from ...gpu.reductions import some

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from ....core.formats.csr import Csr

#: Rows and columns of a tile, as in ``tile_rows.hpp``.
ROWS, COLUMNS = 128, 64
#: Number of partly filled tiles for which masks are made at once, which takes 0.2 MB.
TILES_AT_ONCE = 64
#: Number of row panels to sample for the estimate of how full tiles are.
SAMPLED_PANELS = 32


HostArray = np.ndarray[Any, Any]


class Tiles(NamedTuple):
    """The nonempty tiles of a pattern, by panels of 128 rows.

    Attributes
    ----------
    panels : int
        Number of panels.
    order : array, shape (panels,)
        The panels, most tiles first, so that the panels that start last are short; int32.
    starts : array, shape (panels + 1,)
        The first tile of each panel, int32.
    columns : array, shape (tiles,)
        The column index of each tile in its row of tiles, int32.
    masks : array, shape (tiles,)
        The mask of each tile, int32.
    words : array, shape (128 masks,)
        For each row of a mask, bits that mark the entries among its 64 positions, uint64.
    """

    panels: int
    order: Array
    starts: Array
    columns: Array
    masks: Array
    words: Array


def make_tiles(xp: ModuleType, rows: Array, columns: Array, shape: tuple[int, int]) -> Tiles:
    """Return the tiles of entries.

    Parameters
    ----------
    xp : module
        NumPy, or a module with its functions for the arrays of a device.
    rows, columns : array, shape (nnz,)
        Rows and columns of the entries, in any order.
    shape : tuple of int
        Shape of the matrix.

    Raises
    ------
    Unsuited
        If an entry is stored twice: a mask cannot represent duplicates.
    """
    panels, across = -(-shape[0] // ROWS), max(-(-shape[1] // COLUMNS), 1)
    rows, columns = rows.astype(np.int64), columns.astype(np.int64)
    place = (rows // ROWS * across + columns // COLUMNS) * ROWS + rows % ROWS
    place = xp.sort(place * COLUMNS + columns % COLUMNS)
    if place.size and some(place[1:] == place[:-1]):
        raise Unsuited("an entry is stored twice")
    bits = xp.left_shift(np.uint64(1), (place % COLUMNS).astype(np.uint64))
    # Sums of distinct powers of two; overflow of the cumulative sums cancels.
    totals = xp.concatenate([xp.zeros(1, np.uint64), xp.cumsum(bits, dtype=np.uint64)])
    begins, row_of_tile = _runs(xp, place // COLUMNS)
    ends = xp.concatenate([begins[1:], xp.full(min(begins.size, 1), place.size, begins.dtype)])
    firsts, tile = _runs(xp, row_of_tile // ROWS)
    is_first = xp.zeros(row_of_tile.size, np.int64)
    is_first[firsts] = 1
    words = xp.zeros(int(tile.size) * ROWS, np.uint64)
    number = xp.cumsum(is_first) - 1
    words[number * ROWS + row_of_tile % ROWS] = totals[ends] - totals[begins]
    starts = xp.searchsorted(tile, xp.arange(panels + 1) * across)
    order = xp.argsort(starts[:-1] - starts[1:], kind="stable")
    count = xp.arange(int(tile.size))
    order, starts, columns, masks = (
        x.astype(np.int32) for x in (order, starts, tile % across, count)
    )
    return Tiles(panels, order, starts, columns, masks, words)


def _runs(xp: ModuleType, rising: Array) -> tuple[Array, Array]:
    """Return the start and the length of each run of equal numbers."""
    begins = xp.flatnonzero(rising[1:] != rising[:-1]) + 1
    begins = xp.concatenate([xp.zeros(min(rising.size, 1), begins.dtype), begins])
    return begins, rising[begins]


def make_interval_tiles(first: HostArray, last: HostArray, columns: int) -> Tiles:
    """Return the tiles of an interval mask, on the host: no array is as long as the entries.

    All tiles without a gap share one mask, and equal tiles share a mask: tiles on a diagonal, and
    tiles along the edge of a window.

    Parameters
    ----------
    first, last : array of int, shape (m,)
        Row ``i`` has the columns ``first[i] <= j < last[i]``; both arrays are nondecreasing.
    columns : int
        Number of columns.
    """
    m = first.size
    panels = -(-m // ROWS)
    rows = np.flatnonzero(first < last)
    low, high = first[rows] // COLUMNS, (last[rows] - 1) // COLUMNS
    of_row = rows // ROWS
    # A row adds the tiles after the previous row's last tile, or all of its tiles if it begins a
    # panel.
    begins = low.astype(np.int64)
    follows = np.flatnonzero(of_row[1:] == of_row[:-1]) + 1
    begins[follows] = np.maximum(low[follows], high[follows - 1] + 1)
    counts = np.maximum(high - begins + 1, 0)
    panel = np.repeat(of_row, counts)
    tile = np.arange(panel.size) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
    # Find tiles with a gap: in a panel, the last row begins last and the first row ends first.
    top = np.arange(panels) * ROWS
    bottom = np.minimum(top + ROWS, m) - 1
    latest = np.where(top + ROWS <= m, first[bottom] if m else 0, columns + COLUMNS)
    whole = (latest[panel] <= tile * COLUMNS) & (last[top][panel] >= (tile + 1) * COLUMNS)
    words, masks = _interval_masks(first, last, panel[~whole], tile[~whole])
    numbers = np.zeros(tile.size, np.int32)
    numbers[~whole] = masks + 1
    full = np.full(ROWS, ~np.uint64(0))
    starts = np.searchsorted(panel, np.arange(panels + 1)).astype(np.int32)
    order = np.argsort(starts[:-1] - starts[1:], kind="stable").astype(np.int32)
    words = np.concatenate([full, words.reshape(-1)])
    return Tiles(panels, order, starts, tile.astype(np.int32), numbers, words)


def _interval_masks(
    first: HostArray, last: HostArray, panel: HostArray, tile: HostArray
) -> tuple[HostArray, HostArray]:
    """Return the distinct masks, and the mask of each tile; processes some tiles at a time."""
    found: dict[bytes, int] = {}
    words: list[HostArray] = []
    numbers = np.zeros(panel.size, np.int64)
    for begin in range(0, panel.size, TILES_AT_ONCE):
        some = slice(begin, begin + TILES_AT_ONCE)
        row = panel[some, None] * ROWS + np.arange(ROWS)
        there, row = row < first.size, np.minimum(row, first.size - 1)
        left = tile[some, None] * COLUMNS
        low, high = (np.clip(end[row] - left, 0, COLUMNS) for end in (first, last))
        made = _bits_below(np.where(there, high, 0)) & ~_bits_below(low)
        for number, mask in enumerate(made, begin):
            numbers[number] = found.setdefault(mask.tobytes(), len(words))
            if numbers[number] == len(words):
                words.append(mask)
    return np.array(words, np.uint64).reshape(-1, ROWS), numbers


def _bits_below(count: HostArray) -> HostArray:
    """Return words with their lowest 0 to 64 bits set."""
    some = np.uint64(COLUMNS) - np.clip(count, 1, COLUMNS).astype(np.uint64)
    return np.where(count > 0, ~np.uint64(0) >> some, np.uint64(0))


TILES: Key[Tiles] = Key("tiles")
TRANSPOSED_TILES: Key[Tiles] = Key("tiles of the transposed pattern")


def tiles_of(xp: ModuleType, A: Csr) -> Tiles:
    """Return the tiles of a CSR matrix, made once per pattern."""
    return A._pattern.get(
        TILES, lambda: make_tiles(xp, rows_of(xp, A.indptr, A.nnz), A.indices, A.shape)
    )


def transposed_tiles_of(xp: ModuleType, A: Csr) -> Tiles:
    """Return the tiles of the transposed pattern, made once."""
    return A._pattern.get(
        TRANSPOSED_TILES,
        lambda: make_tiles(xp, A.indices, rows_of(xp, A.indptr, A.nnz), A.shape[::-1]),
    )


def filled(xp: ModuleType, A: Csr, to_host: Callable[[Array], HostArray]) -> float:
    """Return the fraction of filled positions of the tiles, estimated from some panels of rows."""
    panels = -(-A.shape[0] // ROWS)
    across = max(-(-A.shape[1] // COLUMNS), 1)
    step = max(panels // SAMPLED_PANELS, 1)
    firsts = list(range(0, panels, step))
    bounds = [
        min(row, A.shape[0]) for panel in firsts for row in (panel * ROWS, panel * ROWS + ROWS)
    ]
    ends = [int(end) for end in to_host(A.indptr[xp.asarray(bounds)])]
    tiles = [
        number * across + A.indices[begin:end].astype(np.int64) // COLUMNS
        for number, (begin, end) in enumerate(zip(ends[::2], ends[1::2], strict=True))
    ]
    entries = sum(ends[1::2]) - sum(ends[::2])
    count = int(xp.unique(xp.concatenate(tiles)).size)
    return entries / max(count * ROWS * COLUMNS, 1)
