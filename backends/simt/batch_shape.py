"""Choose a launch shape for batch kernels: work-items per system, and where its arrays live."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

#: Pairs (average entries per row, lanes per row) for systems of few rows: the first pair with at
#: most the actual average applies.
LANES = ((48, 8), (24, 4), (12, 2))
FEW_ROWS = 32

#: Upper bound of work-items per block.
MOST_ITEMS = 512

#: Work-items per multiprocessor that should have registers.
RESIDENT_ITEMS = 1024

#: Hold rows in registers only for systems of at most this many rows.
MOST_HELD_ROWS = 1024

#: Upper bound of 32-bit registers for the entries of a row and their columns.
HELD_REGISTERS = 40

#: Upper bound of rows per work-item, and the wave width for which it applies; other widths use one
#: row. Sums over fewer waves need fewer exchanges, and their barriers wait for fewer waves.
MOST_OWN_ROWS, LANES_OF_MANY_ROWS = 4, 32

#: Registers of a work-item besides its rows and vector elements, and the upper bound in total.
BESIDE_ROWS, MOST_REGISTERS = 56, 248

#: Groups of lanes in a wave that holds all rows of a dense matrix, and lanes per group.
TILE_GROUPS, TILE_LANES = 8, 4

#: Registers of a lane besides its part of a dense matrix and its vector elements, among them the
#: elements on their way from shared memory, and the upper bound in total.
BESIDE_TILE, MOST_TILE_REGISTERS = 60, 255

#: Use tiles (one system per wave) only if a multiprocessor can hold this many systems.
LEAST_TILES = 8

#: Bytes of shared memory of a block besides its vectors and its part of a tile: 1 KiB of the device
#: and the scalars of a system.
BESIDE_SHARED = 1280

#: Hardware limits of blocks and of work-items per multiprocessor.
MOST_BLOCKS, MOST_RESIDENT = 32, 2048

#: Hold a row with its zeros only if it has at most this many bytes.
DENSE_BYTES = 512

#: Hold rows as dense rows only if they have at most this many elements per stored entry.
ZEROS = 3

#: Registers of a multiprocessor, its schedulers, and registers of a work-item besides a dense row.
REGISTERS, SCHEDULERS, OTHER_REGISTERS = 1 << 16, 4, 60


@dataclass(frozen=True)
class BatchTarget(ABC):
    """A device that kernels are generated for, and its compiler.

    Attributes
    ----------
    warp : int
        Lanes of a wave.
    shared : int
        Bytes of shared memory that a solver's block may use.
    declared, given : int
        For kernels of factorizations: bytes of shared memory that a kernel may declare statically,
        and that its launch may give a block dynamically.
    most_items : int
        Upper bound of work-items per block.
    multiplies_tiles : bool
        Whether a wave has an instruction that multiplies float64 tiles.
    static : bool
        Whether the kernel's text declares the amount of shared memory; otherwise, the launch does.
    grid : str
        ``"WL_GRID "`` if kernels of the dialect have additional parameters of their own.
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
        """Return the program that contains the given texts.

        Parameters
        ----------
        headers : sequence of str
            The headers to include.
        texts : sequence of str
            Functors, followed by kernels.
        block : int
            Work-items per block.
        resident : int
            Blocks for which a multiprocessor should have registers.
        """


@dataclass(frozen=True)
class BatchShape:
    """The launch shape of a kernel.

    Attributes
    ----------
    block : int
        Work-items per block.
    lanes : int
        Work-items that share a row in a matrix-vector product.
    vectors_shared, values_shared : bool
        Whether shared memory holds the written vectors, and the values of the matrix.
    held : int
        Elements of a row that work-items hold in registers; 0 if rows are not held.
    dense : bool
        Whether a held row is dense; otherwise, it consists of stored entries with their columns.
    rows : int
        Upper bound of rows per work-item, if rows are held.
    tiled : bool
        Whether a wave holds a dense matrix, with parts of several rows in each lane.
    kept : int
        Columns of a lane's part that are in registers; the others are in shared memory.
    resident : int
        Blocks for which a multiprocessor should have registers.
    basis_shared : bool
        Whether shared memory also holds the basis of a Krylov space.
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
    """Memory requirements of one system.

    Attributes
    ----------
    rows : int
        Rows of the system.
    vectors, values : int
        Bytes of the written vectors including their small arrays, and of the matrix's values.
    row_length : float
        Average entries per row.
    longest : int
        Entries of the longest row.
    itemsize : int
        Bytes per value.
    repeats : bool
        Whether a row has duplicate entries.
    basis : int
        Bytes of the basis of a Krylov space.
    own : int
        Bytes per row of all vectors that are read only in a work-item's own row.
    single : bool
        Whether a step requires at most one row per work-item.
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
    """Return the aligned size of an array in the memory of a block."""
    return -(-nbytes // 16) * 16


def shape_for(needs: Needs, target: BatchTarget) -> BatchShape:
    """Return the best launch shape for systems of this size."""
    shape = _without_basis(needs, target)
    taken = needs.vectors + needs.basis + (needs.values if shape.values_shared else 0)
    if shape.dense:
        taken += _tile_of(needs)
    # A large basis in shared memory leaves few blocks per multiprocessor; caches serve it better. A
    # static program for systems of many sizes declares no memory for a basis.
    fits = shape.vectors_shared and not target.static and taken <= target.shared // 4
    return replace(shape, basis_shared=fits)


def _tile_of(needs: Needs) -> int:
    """Return the bytes through which a dense matrix is loaded into registers."""
    return padded(needs.rows * (needs.rows | 1) * needs.itemsize)


def _without_basis(needs: Needs, target: BatchTarget) -> BatchShape:
    """Return the best launch shape, ignoring the basis."""
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
    # Large values in shared memory leave few blocks per multiprocessor; caches serve them better.
    values = vectors and warp > 1 and needs.vectors + needs.values <= target.shared // 4
    return BatchShape(block, lanes, vectors, values, resident=max(1, RESIDENT_ITEMS // block))


def _with_own_rows(needs: Needs, target: BatchTarget) -> BatchShape | None:
    """Return the shape with rows held in registers, or None if they do not fit."""
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
    """Return the shape in which each work-item holds the stored entries of its rows."""
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
    """Return the shape in which a wave holds a dense matrix, or None if registers are too few.

    The number of columns in registers maximizes the systems per multiprocessor.
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
    """Return the rows and columns of a lane's part of a dense matrix with n rows."""
    return -(-n // TILE_GROUPS), -(-n // TILE_LANES)


def cells_of_tile(n: int, first_pivots: int) -> int:
    """Return the elements of memory of a wave that holds ``first_pivots`` columns in registers.

    The memory first stages the columns that move to registers, then stores the others.
    """
    width = parts_of_lane(n)[1]
    return max(first_pivots, width - first_pivots) * distance_in_tile(n)


def distance_in_tile(n: int) -> int:
    """Return the elements of memory that one column of all lanes takes."""
    return parts_of_lane(n)[0] * TILE_GROUPS * TILE_LANES + TILE_LANES


def _resident(registers: int, block: int) -> int:
    """Return the number of blocks for which a multiprocessor has registers.

    Each of its schedulers has its own waves and its own part of the registers.
    """
    each = -(-registers // 8) * 8
    waves = SCHEDULERS * (REGISTERS // SCHEDULERS // (each * LANES_OF_MANY_ROWS))
    return max(1, min(MOST_BLOCKS, MOST_RESIDENT // block, waves * LANES_OF_MANY_ROWS // block))
