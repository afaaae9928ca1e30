"""How the systems of a batch are divided among blocks, and where a block keeps their arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

#: Entries of an average row from which on this number of lanes shares a row of a system of few
#: rows.
LANES = ((48, 8), (24, 4), (12, 2))
FEW_ROWS = 32

#: Work-items of a block at most.
MOST_ITEMS = 512

#: Work-items of a multiprocessor for which there are registers.
RESIDENT_ITEMS = 1024

#: Rows of a system that are held in registers, at most.
MOST_HELD_ROWS = 1024

#: 32-bit registers for the entries of a row with their columns, at most.
HELD_REGISTERS = 40

#: Rows of a work-item at most, and lanes of the waves that it holds for; others have one row. Sums
#: over fewer waves take fewer exchanges, and their barriers wait for fewer.
MOST_OWN_ROWS, LANES_OF_MANY_ROWS = 2, 32

#: Registers of a work-item besides its rows and their elements of vectors, and at most in all.
BESIDE_ROWS, MOST_REGISTERS = 56, 248

#: Groups of lanes of a wave that has all rows of a dense matrix, and the lanes of a group.
TILE_GROUPS, TILE_LANES = 8, 4

#: Registers of a lane besides its part of a dense matrix and its elements of vectors, and at most
#: in all.
BESIDE_TILE, MOST_TILE_REGISTERS = 44, 255

#: Systems that a multiprocessor has at once at least, where a wave has one.
LEAST_TILES = 8

#: Bytes of shared memory that a block has besides its vectors and its part of a tile.
BESIDE_SHARED = 2 << 10

#: Blocks and work-items of a multiprocessor at most.
MOST_BLOCKS, MOST_RESIDENT = 32, 2048

#: Bytes of a row that is held with its zeros, at most.
DENSE_BYTES = 512

#: Elements of a dense row for each stored entry, at most.
ZEROS = 3

#: Registers of a multiprocessor, and of a work-item besides a dense row.
REGISTERS, OTHER_REGISTERS = 1 << 16, 60


@dataclass(frozen=True)
class BatchTarget(ABC):
    """A device that kernels are written for, and its compiler.

    Attributes
    ----------
    warp : int
        Lanes of a wave.
    shared : int
        Bytes of shared memory that a block of a solver's kernel may have.
    declared, given : int
        Bytes of shared memory that a kernel of factors may declare, and that its launch can give
        a block beyond.
    most_items : int
        Work-items of a block at most.
    multiplies_tiles : bool
        Whether a wave multiplies tiles of double precision in one instruction.
    static : bool
        Whether the text says how much shared memory there is; the launch does otherwise.
    grid : str
        ``"WL_GRID "`` where kernels of the dialect have parameters of their own.
    """

    warp: int
    shared: int
    declared: int = 48 << 10
    given: int = 0
    most_items: int = MOST_HELD_ROWS
    multiplies_tiles: bool = False
    static: bool = False
    grid: str = ""

    @abstractmethod
    def program(
        self, headers: Sequence[str], texts: Sequence[str], block: int, resident: int
    ) -> str:
        """Return the program of texts of kernels.

        Parameters
        ----------
        headers : sequence of str
            The headers that it includes.
        texts : sequence of str
            Functors, then kernels.
        block : int
            Work-items of a block.
        resident : int
            Blocks for which a multiprocessor has registers.
        """


@dataclass(frozen=True)
class BatchShape:
    """How a kernel is launched.

    Attributes
    ----------
    block : int
        Work-items of a block.
    lanes : int
        Work-items that share a row in a product.
    vectors_shared, values_shared : bool
        Whether the vectors that are written, and the values of the matrix, are in shared memory.
    held : int
        Elements of a row that work-items have in registers; 0 where they have none.
    dense : bool
        Whether these are all elements of the row, or stored entries with their columns.
    rows : int
        Rows of which a work-item has the elements of vectors, at most, where rows are held.
    tiled : bool
        Whether a wave has a dense matrix, and a lane a part of several rows.
    kept : int
        Columns of this part in registers; the others are in shared memory.
    resident : int
        Blocks for which a multiprocessor has registers.
    basis_shared : bool
        Whether the basis of a Krylov space is in shared memory as well.
    """

    block: int
    lanes: int
    vectors_shared: bool
    values_shared: bool
    held: int = 0
    dense: bool = False
    rows: int = 1
    tiled: bool = False
    kept: int = 0
    resident: int = 1
    basis_shared: bool = False


@dataclass(frozen=True)
class Needs:
    """Bytes that one system takes.

    Attributes
    ----------
    rows : int
        Of the system.
    vectors, values : int
        Bytes of the vectors that programs write with their small arrays, and of the values of the
        matrix.
    row_length : float
        Entries of an average row.
    longest : int
        Entries of the longest row.
    itemsize : int
        Bytes of a value.
    repeats : bool
        Whether a row has two entries of one column.
    basis : int
        Bytes of the basis of a Krylov space.
    own : int
        Bytes of an element of all vectors of which no other row is read.
    single : bool
        Whether a step has one row a work-item at most.
    """

    rows: int
    vectors: int
    values: int
    row_length: float
    longest: int
    itemsize: int = 8
    repeats: bool = False
    basis: int = 0
    own: int = 0
    single: bool = False


def padded(nbytes: int) -> int:
    """Return the bytes of an array in the memory of a block."""
    return -(-nbytes // 16) * 16


def shape_for(needs: Needs, target: BatchTarget) -> BatchShape:
    """Return how systems of this size are solved best."""
    shape = _without_basis(needs, target)
    taken = needs.vectors + needs.basis + (needs.values if shape.values_shared else 0)
    if shape.dense:
        taken += _tile_of(needs)
    # A large basis in shared memory leaves a multiprocessor few blocks: caches serve it better. One
    # program for systems of many sizes declares no memory for it.
    fits = shape.vectors_shared and not target.static and taken <= target.shared // 4
    return replace(shape, basis_shared=fits)


def _tile_of(needs: Needs) -> int:
    """Return the bytes of a dense matrix on its way to registers."""
    return padded(needs.rows * (needs.rows | 1) * needs.itemsize)


def _without_basis(needs: Needs, target: BatchTarget) -> BatchShape:
    """Return how systems of this size are solved best, without a basis."""
    vectors = needs.vectors <= target.shared
    if vectors:
        own = _with_own_rows(needs, target)
        if own is not None:
            return own
    warp, most = target.warp, min(MOST_ITEMS, target.most_items)
    lanes = next((count for length, count in LANES if needs.row_length >= length), 1)
    if needs.rows > FEW_ROWS or warp < lanes:
        lanes = 1  # there are enough rows for all work-items
    items = needs.rows * lanes
    rounds = -(-items // most)
    in_round = -(-items // rounds)
    block = -(-in_round // warp) * warp
    # Large values in shared memory leave a multiprocessor few blocks: caches serve them better.
    values = vectors and warp > 1 and needs.vectors + needs.values <= target.shared // 4
    return BatchShape(block, lanes, vectors, values, resident=max(1, RESIDENT_ITEMS // block))


def _with_own_rows(needs: Needs, target: BatchTarget) -> BatchShape | None:
    """Return the shape in which work-items have their rows in registers, if the rows fit."""
    n, words = needs.rows, needs.itemsize // 4
    if n > MOST_HELD_ROWS or needs.longest == 0:
        return None
    if needs.longest * (words + 1) <= HELD_REGISTERS:
        return _with_entries(needs, target)
    few_zeros = n <= ZEROS * needs.row_length and n * needs.itemsize <= DENSE_BYTES
    if needs.repeats or not few_zeros:
        return None
    tiled = _with_tile(needs, target)
    if tiled is not None:
        return tiled
    if needs.vectors + _tile_of(needs) > target.shared:
        return None
    block = -(-n // target.warp) * target.warp
    if block > target.most_items:
        return None
    resident = max(1, REGISTERS // ((n * words + OTHER_REGISTERS) * block))
    return BatchShape(block, 1, True, False, n, True, resident=resident)


def _with_entries(needs: Needs, target: BatchTarget) -> BatchShape | None:
    """Return the shape in which a work-item has the entries of its rows."""
    words = needs.itemsize // 4
    of_row = needs.longest * words + -(-needs.longest // 2) + needs.own // 4
    rows = 1
    while (
        not needs.single
        and target.warp == LANES_OF_MANY_ROWS
        and 2 * rows <= MOST_OWN_ROWS
        and rows * target.warp < needs.rows
        and 2 * rows * of_row + BESIDE_ROWS <= MOST_REGISTERS
    ):
        rows *= 2
    block = -(-needs.rows // (rows * target.warp)) * target.warp
    if block > target.most_items:
        return None
    if rows == 1:
        resident = max(1, RESIDENT_ITEMS // block)
    else:
        resident = _resident(rows * of_row + BESIDE_ROWS, block)
    return BatchShape(block, 1, True, False, needs.longest, False, rows, resident=resident)


def _with_tile(needs: Needs, target: BatchTarget) -> BatchShape | None:
    """Return the shape in which a wave has a dense matrix, if its registers suffice.

    As many columns are in registers as leave a multiprocessor the most systems.
    """
    if target.warp != TILE_GROUPS * TILE_LANES or needs.single:
        return None
    height, width = parts_of_lane(needs.rows)
    rows = -(-height // TILE_LANES)
    best: tuple[int, int] | None = None
    for kept in range(1, width + 1):
        taken = kept * height * needs.itemsize // 4 + rows * needs.own // 4 + BESIDE_TILE
        cells = padded(cells_of_tile(needs.rows, kept) * needs.itemsize)
        memory = max(needs.vectors - needs.own * needs.rows, 0) + cells + BESIDE_SHARED
        if taken > MOST_TILE_REGISTERS or memory > target.shared:
            continue
        blocks = min(_resident(taken, target.warp), target.shared // memory)
        best = max(best or (0, 0), (blocks, kept))
    if best is None or best[0] < LEAST_TILES:
        return None
    return BatchShape(
        target.warp, 1, True, False, needs.rows, True, rows, tiled=True, kept=best[1],
        resident=best[0],
    )  # fmt: skip


def parts_of_lane(n: int) -> tuple[int, int]:
    """Return the rows and the columns that a lane of a wave has of a dense matrix of n rows."""
    return -(-n // TILE_GROUPS), -(-n // TILE_LANES)


def cells_of_tile(n: int, kept: int) -> int:
    """Return the elements of memory of a wave that has a dense matrix, some columns in registers.

    They hold the columns that are in registers first, then the others.
    """
    width = parts_of_lane(n)[1]
    return max(kept, width - kept) * distance_in_tile(n)


def distance_in_tile(n: int) -> int:
    """Return the elements of memory of one column of all lanes."""
    return parts_of_lane(n)[0] * TILE_GROUPS * TILE_LANES + TILE_LANES


def _resident(registers: int, block: int) -> int:
    """Return the blocks for which a multiprocessor has registers."""
    each = -(-registers // 8) * 8
    return max(1, min(MOST_BLOCKS, MOST_RESIDENT // block, REGISTERS // (each * block)))
