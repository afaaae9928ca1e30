"""Patterns for tensor-core kernels: masks, and an order of values.

Rows are cut into blocks of 64, and columns into steps of 64. One 32-bit mask for each of 128 lanes
marks the entries among the 4096 positions of a step; ``tensor_tiles.hpp`` defines the positions of
a lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...gpu.reductions import some

if TYPE_CHECKING:
    from types import ModuleType

    from ....core.executor import Array

#: Rows per block, and columns per step.
TILE = 64
#: Lanes that share a step.
LANES = 128
#: Bytes per step for its masks and for the positions of each lane's first value.
META = LANES * 4 + LANES * 2
#: The values of a step are padded to a multiple of this number.
UNIT = 8
#: Bits of ``order`` for the row in a block.
ROW_BITS = 6
PADDING = 2**32 - 1


class TilePattern(NamedTuple):
    """A pattern for tensor cores.

    Attributes
    ----------
    blocks, steps : int
        Number of blocks of rows, and of steps of columns.
    masks : array of uint8, shape (blocks, steps, 768)
        The masks of each step (uint32), followed by the first value of each lane (uint16).
    starts : array of int32, shape (blocks * steps + 1,)
        The first value of each step, in units of eight values.
    order : array of uint32, shape (8 * starts[-1],)
        For each value, its row in the block plus 64 times its number among the block's entries.
    most : int
        The largest number of units in a step.
    """

    blocks: int
    steps: int
    masks: Array
    starts: Array
    order: Array
    most: int

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return sum(int(a.nbytes) for a in (self.masks, self.starts, self.order))


def place_of(row: Array, column: Array) -> Any:
    """Return positions of entries in their step: 32 times the lane, plus the bit of its mask."""
    lane = row % TILE // 16 * 32 + row % 8 * 4 + column % 8 // 2
    bit = column % TILE // 16 * 8 + column % 16 // 8 * 4 + row % 16 // 8 * 2 + column % 2
    return lane * 32 + bit


def tile_pattern(xp: ModuleType, indptr: Array, indices: Array, columns: int) -> TilePattern | None:
    """Return the tiles of a CSR pattern, or None if a position repeats.

    Parameters
    ----------
    xp : module
        NumPy, or a module with its functions for the arrays of a device.
    indptr, indices : array
        The CSR pattern; rows need not be sorted.
    columns : int
        Columns of the matrix.
    """
    rows, nnz = int(indptr.size) - 1, int(indices.size)
    blocks, steps = max(1, -(-rows // TILE)), max(1, -(-columns // TILE))
    begin = indptr.astype(np.int64)
    row = xp.searchsorted(begin[1:], xp.arange(nnz), side="right")
    column = indices.astype(np.int64)
    key = (row // TILE * steps + column // TILE) * (TILE * TILE) + place_of(row, column)
    sequence = xp.argsort(key)
    key = key[sequence]
    if nnz and some(key[1:] == key[:-1]):
        return None
    lane = key // 32
    of_lane = xp.bincount(lane, minlength=blocks * steps * LANES).reshape(-1, LANES)
    # sums of distinct powers of two equal their bitwise "or", and are exact
    power = xp.left_shift(np.int64(1), key % 32).astype(np.float64)
    mask = xp.bincount(lane, weights=power, minlength=blocks * steps * LANES)
    offset = xp.cumsum(of_lane, axis=1) - of_lane
    masks = xp.empty((blocks * steps, META), np.uint8)
    masks[:, : LANES * 4] = mask.astype(np.uint32).reshape(-1, LANES).view(np.uint8)
    masks[:, LANES * 4 :] = offset.astype(np.uint16).view(np.uint8)
    count = of_lane.sum(axis=1)
    units = (count + UNIT - 1) // UNIT
    starts = xp.zeros(blocks * steps + 1, np.int64)
    xp.cumsum(units, out=starts[1:])
    first = xp.cumsum(count) - count
    step = key // (TILE * TILE)
    order = xp.full(int(starts[-1]) * UNIT, PADDING, np.uint32)
    in_block = sequence - begin[row[sequence] // TILE * TILE]
    number = in_block << ROW_BITS | row[sequence] % TILE
    order[starts[step] * UNIT + xp.arange(nnz) - first[step]] = number.astype(np.uint32)
    most = int(units.max()) if units.size else 0
    return TilePattern(
        blocks, steps, masks.reshape(blocks, steps, META), starts.astype(np.int32), order, most
    )
