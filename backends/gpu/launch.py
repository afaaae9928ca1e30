"""Launch arithmetic without a GPU: numbers of blocks, and scratch memory."""

from __future__ import annotations

from typing import NamedTuple

from ..unified.wrappers import LARGEST_SUM

#: Work-items per block, unless a kernel specifies another number.
BLOCK = 256
#: Resident blocks of 256 per multiprocessor of compute capability 8.0 and 9.0: 2048 work-items.
RESIDENT = 8
#: Blocks per multiprocessor for kernels that end in many sums, to limit the partial sums.
FEW = 2


class Grid(NamedTuple):
    """A number of blocks, and the bytes of scratch memory for their partial sums."""

    blocks: int
    scratch: int


#: Upper bound of blocks in a grid.
MOST_BLOCKS = 2**31 - 1


def row_blocks(items: int, per_block: int = BLOCK) -> int:
    """Return enough blocks for one work-item per item.

    A smaller grid that loops would be slower: while a block waits for its loads, another block can
    start. With only resident blocks, sub-warps on a 7-point stencil took 478 microseconds.
    """
    return max(1, min(-(-items // per_block), MOST_BLOCKS))


def tile_width(columns: int, block: int = BLOCK) -> int:
    """Return the width in columns of a block's tile; the same as in ``map_simt.hpp``."""
    return min(columns, block)


def map_grid(
    rows: int, columns: int, most: int, block: int = BLOCK, of_sum: int = LARGEST_SUM
) -> Grid:
    """Return the grid of a map operation over ``rows`` x ``columns``.

    It depends only on the sizes and ``most``, and therefore so does the order of sums.

    Parameters
    ----------
    most : int
        Upper bound of blocks: the resident blocks if every block stores a partial sum.
    block : int
        Work-items per block.
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
    """Return the number of row groups that ``blocks`` blocks of a grid over ``columns`` form."""
    return blocks // -(-columns // tile_width(columns, block))
