"""Launch arithmetic: how many blocks and how much scratch memory, without a GPU."""

from __future__ import annotations

from typing import NamedTuple

from ..unified.wrappers import LARGEST_SUM

#: Work-items of a block, where a kernel does not say otherwise.
BLOCK = 256
#: Blocks of 256 that a multiprocessor of compute capability 8.0 and 9.0 holds: 2048 work-items.
RESIDENT = 8
#: Blocks a multiprocessor for kernels that end in many sums: fewer partial sums to add at the end.
FEW = 2


class Grid(NamedTuple):
    """A number of blocks, and the bytes of scratch memory that their partial sums take."""

    blocks: int
    scratch: int


def row_blocks(rows: int, multiprocessors: int, per_block: int = BLOCK) -> int:
    """Return enough blocks for ``rows`` work-items, but no more than are resident at once."""
    wanted = -(-rows // per_block)
    return max(1, min(wanted, multiprocessors * RESIDENT * BLOCK // min(per_block, BLOCK)))


def tile_width(columns: int, block: int = BLOCK) -> int:
    """Return how many columns the tile of a block is wide; the same as in ``map_simt.hpp``."""
    return min(columns, block)


def map_grid(
    rows: int, columns: int, multiprocessors: int, resident: int = RESIDENT, block: int = BLOCK
) -> Grid:
    """Return the grid of a map operation over ``rows`` x ``columns``.

    It depends on nothing but the sizes and the device, and so does the order of sums.
    """
    if columns <= 1:
        blocks = max(1, min(-(-rows // block), multiprocessors * resident))
        return Grid(blocks, blocks * LARGEST_SUM)
    width = tile_width(columns, block)
    across = -(-columns // width)
    groups = max(1, min(-(-rows // (block // width)), max(1, multiprocessors * resident // across)))
    return Grid(across * groups, groups * columns * LARGEST_SUM)


def tile_groups(columns: int, blocks: int, block: int = BLOCK) -> int:
    """Return how many groups of rows ``blocks`` of a grid over ``columns`` are."""
    return blocks // -(-columns // tile_width(columns, block))
