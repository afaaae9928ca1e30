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


#: Blocks of a grid at most.
MOST_BLOCKS = 2**31 - 1


def row_blocks(items: int, per_block: int = BLOCK) -> int:
    """Return enough blocks for ``items`` work-items.

    Not fewer that take turns: while a block waits for its loads another one has begun. Sub-warps on
    a 7-point stencil took 478 microseconds with as many blocks as are resident.
    """
    return max(1, min(-(-items // per_block), MOST_BLOCKS))


def tile_width(columns: int, block: int = BLOCK) -> int:
    """Return how many columns the tile of a block is wide; the same as in ``map_simt.hpp``."""
    return min(columns, block)


def map_grid(
    rows: int, columns: int, most: int, block: int = BLOCK, of_sum: int = LARGEST_SUM
) -> Grid:
    """Return the grid of a map operation over ``rows`` x ``columns``.

    It depends on nothing but the sizes and ``most``, and so does the order of sums.

    Parameters
    ----------
    most : int
        Blocks at most: as many as are resident, where every block leaves a partial sum.
    block : int
        Work-items of a block.
    of_sum : int
        Bytes of a partial sum.
    """
    if columns <= 1:
        blocks = max(1, min(-(-rows // block), most))
        return Grid(blocks, blocks * of_sum)
    width = tile_width(columns, block)
    across = -(-columns // width)
    groups = max(1, min(-(-rows // (block // width)), most // across))
    return Grid(across * groups, groups * columns * of_sum)


def tile_groups(columns: int, blocks: int, block: int = BLOCK) -> int:
    """Return how many groups of rows ``blocks`` of a grid over ``columns`` are."""
    return blocks // -(-columns // tile_width(columns, block))
