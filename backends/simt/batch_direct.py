"""Direct solves of batches: each block factorizes one matrix, in registers or in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ...core.batch.factors import Determinants, FactoredSystems
from ...core.batch.systems import matrix_of_each
from ...core.batch.verdicts import Verdicts
from ..unified.wrappers import SimtKernel
from . import batch_kernels as simt
from .batch_verdicts import NativeVerdicts

if TYPE_CHECKING:
    from ...core.batch.factors import Layout
    from ...core.executor import Array
    from .batch_executor import BlockExecutor
    from .batch_shape import BatchTarget

Numbers = np.ndarray[Any, Any]

#: Keep a row in the registers of a work-item only if it has at most this many bytes.
ROW_BYTES = 512

#: Upper bounds for two rows in a work-item's registers (bytes), and for its registers.
BOTH_ROW_BYTES, MOST_REGISTERS = 864, 255

#: Rows of a tile in the registers of a wave; columns of a panel; registers of a lane besides its
#: tiles, minimum and wanted; largest number of blocks per multiprocessor.
TILE_EDGE, TILE_DEPTH, LEAST_BESIDE_TILES, BESIDE_TILES, MOST_BLOCKS = 8, 4, 48, 72, 32

#: Unrolled steps of an elimination that share their code: ``together`` in ``batch_dense.hpp``.
STEPS_TOGETHER = 8

#: Estimated 32-bit registers of a work-item besides a row.
OTHER_REGISTERS = 48

#: Candidate numbers of waves per block if the block's registers hold the inverse of a matrix, and
#: the estimated 32-bit registers of a work-item besides its elements.
GRID_WAVES, OTHER_GRID_REGISTERS = (4, 8, 12, 16), 44

#: Candidates (waves per block, waves that share a row of tiles) if the block's registers hold the
#: inverse of a matrix in tiles, and the estimated 32-bit registers of a lane besides its tiles.
TILE_WAVES: tuple[tuple[int, int], ...] = ((4, 1), (4, 2), (8, 1), (8, 2), (12, 2))
BESIDE_INVERSE = 55

#: Estimated 32-bit registers of a lane besides its rows of a tridiagonal system.
OTHER_TRIDIAGONAL_REGISTERS = 64

#: Number of registers of a multiprocessor, and of the schedulers that share them.
REGISTERS, SCHEDULERS = 1 << 16, 4

#: Bytes of shared memory that a kernel uses besides the memory given by its launch.
RESERVED_SHARED = 2 << 10

#: Work-items per block if a block takes most of a multiprocessor's shared memory.
LARGE_BLOCK = 512

#: Bytes of device memory for matrices that do not fit into the memory of a block.
ARENA = 2**30

#: Pairs (multiplications per elimination step, work-items per block): the first pair with at most
#: the actual number of multiplications applies.
BLOCKS = ((1024, 256), (128, 128))
SMALL_BLOCK = 64

#: Pairs (largest system, rows per lane) for tridiagonal systems.
LANE_ROWS = ((16, 2), (256, 8), (512, 16))

#: Upper bound, in bytes, of the part of a diagonal in a lane's registers.
MOST_ROW_BYTES = 128

#: Pairs (average entries per row, lanes per row) for residuals: the first pair with at most the
#: actual average applies.
LANES = ((16, 8), (4, 2))


@dataclass(frozen=True)
class Chosen:
    """A kernel for direct solves, and its memory.

    Attributes
    ----------
    kernel : SimtKernel
        The kernel.
    constants : dict
        The constants that the kernel is compiled for.
    layout : Layout
        The positions of entries.
    each : int
        Elements of the arena per block; 0 if the kernel needs none.
    shared : int
        Bytes of shared memory per block, given by the launch.
    """

    kernel: SimtKernel
    constants: dict[str, int]
    layout: Layout
    each: int
    shared: int = 0

    @property
    def is_in_registers(self) -> bool:
        """Whether the kernel keeps rows in registers."""
        return "N" in self.constants


def chosen_kernel(
    layout: Layout, dtype: np.dtype[Any], entries: int, target: BatchTarget
) -> Chosen:
    """Return the kernel that factorizes matrices of a layout.

    Parameters
    ----------
    layout : Layout
        The layout of the factors.
    dtype : dtype
        The dtype of the values.
    entries : int
        Number of stored entries of a matrix.
    target : BatchTarget
        The device.
    """
    n, itemsize, warp = layout.n, np.dtype(dtype).itemsize, target.warp
    lanes = next((count for length, count in LANES if entries >= length * n), 1)
    lanes = lanes if lanes <= warp else 1
    distance = (n + STEPS_TOGETHER - 1) | 1
    tile = n * (distance + 5) * itemsize
    block = -(-n // warp) * warp
    if has_rows_in_registers(layout, itemsize, target) and tile <= target.declared - 1024:
        registers = n * itemsize // 4 + OTHER_REGISTERS
        resident = max(1, REGISTERS // (registers * block))
        kernel = simt.batch_dense(block, resident)
        return Chosen(kernel, {"N": n, "L": lanes}, layout.with_distance(distance), 0)
    inverse = _tile_inverse(layout, dtype, lanes, target) or _grid(layout, itemsize, lanes, target)
    if inverse is not None:
        return inverse
    if layout.is_dense:
        layout = layout.with_distance(n | 1)
    work = layout.lower * (layout.lower + layout.upper)
    block = next((items for least, items in BLOCKS if work >= least), SMALL_BLOCK)
    block = 1 if warp == 1 else min(block, target.most_items)
    pivots = -(-4 * n // itemsize)
    each = layout.size + 4 * n + pivots
    each += each % 2
    most = (target.declared - 1024) // itemsize
    fits = each <= most
    given = not fits and each * itemsize <= target.given - RESERVED_SHARED
    if given:
        block = LARGE_BLOCK  # a multiprocessor holds few such blocks
    # Compilers of static targets are slow: one program serves matrices of many sizes.
    cells = min(1 << (each - 1).bit_length(), most) if target.static else each
    constants = {"CELLS": cells if fits else 0, "OWN": int(given), "B": block, "L": lanes}
    in_arena = 0 if fits or given else each
    shared = each * itemsize if given else 0
    return Chosen(simt.batch_band(block), constants, layout, in_arena, shared)


def _grid(layout: Layout, itemsize: int, lanes: int, target: BatchTarget) -> Chosen | None:
    """Return the kernel that keeps a dense inverse in registers, or None if they do not suffice."""
    n, warp = layout.n, target.warp
    if not layout.is_dense or warp == 1:
        return None
    across = -(-n // warp)
    best: tuple[int, int, int, int] | None = None
    for waves in GRID_WAVES:
        block, down = waves * warp, -(-n // waves)
        registers = down * across * itemsize // 4 + OTHER_GRID_REGISTERS
        nbytes = (n * n + 4 * n + down * waves + across * warp + n + 1) * itemsize
        fits = nbytes + 8 * (n + waves) <= target.declared - 1024
        most = target.given - RESERVED_SHARED - 8 * n
        if down > 31 or block > target.most_items or not (fits or nbytes <= most):
            continue
        registers = -(-registers // 8) * 8
        resident = min(
            REGISTERS // (registers * block), max(target.given, target.declared) // nbytes
        )
        if registers <= MOST_REGISTERS and resident and waves * resident > (best or (0,))[0]:
            best = waves * resident, waves, resident, 0 if fits else nbytes
    if best is None:
        return None
    _, waves, resident, shared = best
    kernel = simt.batch_grid(waves * warp, resident)
    constants = {"N": n, "OWN": int(shared > 0), "PARTS": 0, "B": waves * warp, "L": lanes}
    return Chosen(kernel, constants, layout.with_distance(n), 0, shared)


def _tile_inverse(
    layout: Layout, dtype: np.dtype[Any], lanes: int, target: BatchTarget
) -> Chosen | None:
    """Return the kernel that keeps the inverse of a dense matrix in tiles, if registers suffice.

    Prefers the candidate with the most systems per multiprocessor, then the one with the most
    waves.
    """
    n, itemsize, warp = layout.n, np.dtype(dtype).itemsize, target.warp
    if not layout.is_dense or dtype != np.float64 or not target.multiplies_tiles:
        return None
    tiles = -(-n // TILE_EDGE)
    best: tuple[int, int, int, int] | None = None
    for waves, parts in TILE_WAVES:
        groups = waves // parts
        down, across = -(-tiles // groups), -(-tiles // parts)
        registers = down * across * 2 * itemsize // 4 + BESIDE_INVERSE
        panel = groups * down * TILE_EDGE * TILE_DEPTH
        pivots = TILE_DEPTH * (parts * across * TILE_EDGE + TILE_DEPTH)
        nbytes = (n * n + 5 * n + n % 2 + 2 * panel + pivots) * itemsize
        fits = nbytes + 8 * n <= target.declared - 1024
        if not (fits or nbytes <= target.given - RESERVED_SHARED - 8 * n):
            continue
        if registers > MOST_REGISTERS or waves * warp > target.most_items:
            continue
        of_scheduler = REGISTERS // SCHEDULERS // (-(-registers // 8) * 8 * warp)
        resident = min(
            SCHEDULERS * of_scheduler // waves, max(target.given, target.declared) // nbytes
        )
        if resident and (resident, waves) > (best or (0, 0))[:2]:
            best = resident, waves, parts, 0 if fits else nbytes
    if best is None:
        return None
    resident, waves, parts, shared = best
    kernel = simt.batch_grid(waves * warp, resident)
    constants = {"N": n, "OWN": int(shared > 0), "PARTS": parts, "B": waves * warp, "L": lanes}
    return Chosen(kernel, constants, layout.with_distance(n), 0, shared)


def has_rows_in_registers(layout: Layout, itemsize: int, target: BatchTarget) -> bool:
    """Return whether each work-item of a block can keep a row of a dense matrix."""
    block = -(-layout.n // target.warp) * target.warp
    small = layout.is_dense and layout.n * itemsize <= ROW_BYTES
    return small and target.warp > 1 and block <= target.most_items


@dataclass(frozen=True)
class Once:
    """A kernel that solves without keeping factors; it may leave systems undecided.

    Attributes
    ----------
    kernel : SimtKernel
        The kernel.
    constants : dict
        The constants that the kernel is compiled for.
    together : int
        Systems per block.
    places : array of int32, shape (nnz,)
        The element of the block's memory in which each entry is stored.
    own_alone : bool
        Whether the kernel applies only if each system has its own matrix.
    """

    kernel: SimtKernel
    constants: dict[str, int]
    together: int
    places: Numbers
    own_alone: bool


def once_kernel(layout: Layout, dtype: np.dtype[Any], target: BatchTarget) -> Once | None:
    """Return the kernel that solves systems of a layout without keeping factors, or None."""
    return (
        _tridiagonal(layout, dtype, target)
        or _tiles(layout, dtype, target)
        or _elimination(layout, dtype, target)
    )


def _tiles(layout: Layout, dtype: np.dtype[Any], target: BatchTarget) -> Once | None:
    """Return the kernel that keeps a small dense matrix as tiles in the registers of a wave."""
    n, itemsize = layout.n, np.dtype(dtype).itemsize
    if dtype != np.float64 or not target.multiplies_tiles or layout.repeats:
        return None
    if not has_rows_in_registers(layout, itemsize, target):
        return None
    down, across = -(-n // TILE_EDGE), n // TILE_EDGE + 1
    of_tiles = 2 * itemsize // 4 * down * across
    if of_tiles + LEAST_BESIDE_TILES > MOST_REGISTERS:
        return None
    registers = min(of_tiles + BESIDE_TILES, MOST_REGISTERS + 1)
    stride = (-(-n // 2) | 1) * 2
    row, column = layout.rows_and_columns
    places = (row * stride + column).astype(np.int32)
    resident = min(MOST_BLOCKS, REGISTERS // (-(-registers // 8) * 8 * target.warp))
    kernel = simt.batch_tiles(target.warp, resident)
    return Once(kernel, {"N": n}, 1, places, True)


def _elimination(layout: Layout, dtype: np.dtype[Any], target: BatchTarget) -> Once | None:
    """Return the kernel that eliminates small dense matrices with rows in registers."""
    n, itemsize, warp = layout.n, np.dtype(dtype).itemsize, target.warp
    if layout.repeats or not has_rows_in_registers(layout, itemsize, target):
        return None
    each = max(16 // itemsize, 1)
    stride = (-(-n // each) | 1) * each
    if n * (stride + 2) * itemsize > target.declared - 1024:
        return None
    # Two rows per work-item if one wave can hold all rows in its registers.
    each_item = 2 if warp < n <= 2 * warp and 2 * n * itemsize <= BOTH_ROW_BYTES else 1
    block = -(-n // (each_item * warp)) * warp
    registers = min(each_item * n * itemsize // 4 + OTHER_REGISTERS, MOST_REGISTERS)
    resident = max(1, REGISTERS // (registers * block))
    row, column = layout.rows_and_columns
    places = (row * stride + column).astype(np.int32)
    kernel = simt.batch_elimination(block, resident)
    return Once(kernel, {"N": n, "P": each_item}, 1, places, True)


def _tridiagonal(layout: Layout, dtype: np.dtype[Any], target: BatchTarget) -> Once | None:
    """Return the kernel that shares a tridiagonal system among lanes, or None.

    It applies to matrices with three diagonals in their given order, without duplicate entries,
    that fit into the registers of a wave.
    """
    n, itemsize, warp = layout.n, np.dtype(dtype).itemsize, target.warp
    own_order = np.array_equal(layout.order, np.arange(n))
    if n < 2 or max(layout.lower, layout.upper) > 1 or not own_order or layout.repeats:
        return None
    rows = next((rows for most, rows in LANE_ROWS if n <= most), None)
    if rows is None or rows * itemsize > MOST_ROW_BYTES:
        return None
    lanes = 1 << (-(-n // rows) - 1).bit_length()
    if lanes > warp or warp == 1:
        return None
    cells = (4 * rows + 2) * lanes * itemsize * (warp // lanes)
    block = next((b for b in (128, 64) if b // warp * cells <= target.declared - 1024), None)
    if block is None:
        return None
    row, column = layout.rows_and_columns
    places = row // rows * (3 * rows + 1) + row % rows * 3 + column - row + 1
    constants = {"R": rows, "L": lanes}
    # A lane holds four diagonals, including the right-hand side, in registers.
    registers = rows * itemsize + OTHER_TRIDIAGONAL_REGISTERS
    kernel = simt.batch_tridiagonal(block, max(1, REGISTERS // (registers * block)))
    return Once(kernel, constants, block // lanes, places.astype(np.int32), False)


@dataclass(eq=False)
class _Ready:
    """Device arrays of a layout, shared by all solves.

    Attributes
    ----------
    chosen : Chosen
        The kernel that factorizes.
    places, order : array
        Device arrays of the layout of ``chosen``.
    once : Once or None
        The kernel to try first.
    cells : array or None
        Device array with the ``places`` of ``once``.
    """

    chosen: Chosen
    places: Array
    order: Array
    once: Once | None
    cells: Array | None
    _limits: Array | None = None

    def limits(self, executor: BlockExecutor, systems: FactoredSystems) -> Array:
        """Return the norm limits for kernels; they depend only on the dtype."""
        if self._limits is None:
            s = systems
            self._limits = executor.from_host(np.array([s.least, s.most, s.least_norm]))
        return self._limits


#: Arrays of each layout, by executor, dtype and number of entries.
_READY: WeakKeyDictionary[Layout, dict[Any, _Ready]] = WeakKeyDictionary()


def _ready(executor: BlockExecutor, layout: Layout, values: Array) -> _Ready:
    """Return the arrays of a layout for matrices with these values."""
    of_layout = _READY.setdefault(layout, {})
    entries, dtype = int(values.shape[1]), values.dtype
    key = (executor, dtype, entries)
    if key not in of_layout:
        target = executor.blocks.target
        chosen = chosen_kernel(layout, dtype, entries, target)
        once = once_kernel(layout, dtype, target)
        of_layout[key] = _Ready(
            chosen, executor.from_host(chosen.layout.places),
            executor.from_host(chosen.layout.order), once,
            None if once is None else executor.from_host(once.places),
        )  # fmt: skip
    return of_layout[key]


def solve_directly(executor: BlockExecutor, layout: Layout, systems: FactoredSystems) -> None:
    """Factorize all matrices and solve their systems; write the verdicts to ``systems``."""
    ready = _ready(executor, layout, systems.values)
    once, own = ready.once, systems.matrix is None and systems.width == 1
    if systems.started or once is None or (once.own_alone and not own):
        _factorize_and_solve(executor, ready, systems)
        return
    _solve_once(executor, ready, once, systems)
    left = systems.verdicts.undecided
    if left.size:
        _with_factors(executor, ready, systems, left)


def _with_factors(
    executor: BlockExecutor, ready: _Ready, systems: FactoredSystems, left: Numbers
) -> None:
    """Solve the undecided systems with pivoted factors and iterative refinement.

    Their matrices are copied to contiguous memory, so that the solved systems cause no work.
    """
    s = systems
    of_matrix = max(int(s.values.shape[1]) * s.values.dtype.itemsize, 1)
    together = max(1, ARENA // of_matrix)
    for first in range(0, left.size, together):
        chosen = left[first : first + together]
        matrices, matrix = np.unique(matrix_of_each(s, chosen), return_inverse=True)
        places = executor.from_host(chosen)
        part = replace(
            s, values=s.values[executor.from_host(matrices)], matrix=matrix, b=s.b[places],
            x=s.x[places], tolerances=s.tolerances.of(chosen), verdicts=Verdicts(chosen.size),
        )  # fmt: skip
        _factorize_and_solve(executor, ready, part)
        s.x[places] = part.x
        s.verdicts.take(chosen, part.verdicts)


def _solve_once(
    executor: BlockExecutor, ready: _Ready, once: Once, systems: FactoredSystems
) -> None:
    """Solve systems without refinement; those with too large residuals stay undecided."""
    s, count, xp = systems, systems.count, executor.xp
    verdicts = NativeVerdicts(executor, count)
    tolerances = s.tolerances.native(executor)
    x = xp.ascontiguousarray(s.x)
    own = s.matrix is None and s.width == 1
    matrix = None if own else executor.from_host(matrix_of_each(s))
    given = (
        count, int(s.b.shape[1]), ready.cells, matrix, int(s.values.shape[1]),
        xp.ascontiguousarray(s.values), xp.ascontiguousarray(s.b), x, tolerances.relative,
        tolerances.absolute, tolerances.apart, ready.limits(executor, s), s.refine,
        *verdicts.arrays,
    )  # fmt: skip
    blocks = -(-count // once.together)
    executor.blocks.launch_template(
        once.kernel, blocks, given, s.values.dtype, s.indptr.dtype, once.constants
    )
    verdicts.tell(s.verdicts)
    if x is not s.x:
        executor.copy_into(s.x, x)


def _factorize_and_solve(executor: BlockExecutor, ready: _Ready, systems: FactoredSystems) -> None:
    """Factorize every matrix with pivoting, and solve its systems."""
    s, xp = systems, executor.xp
    starts = None
    if s.matrix is not None:
        counted = np.searchsorted(s.matrix, np.arange(int(s.values.shape[0]) + 1))
        starts = executor.from_host(counted.astype(np.int64))
    verdicts = NativeVerdicts(executor, s.count)
    tolerances = s.tolerances.native(executor)
    b, x = xp.ascontiguousarray(s.b), xp.ascontiguousarray(s.x)
    values = xp.ascontiguousarray(s.values)
    given = (
        starts, s.width, int(values.shape[1]), s.indptr, s.indices, values, b, x, int(s.started),
        tolerances.relative, tolerances.absolute, tolerances.apart, ready.limits(executor, s),
        s.refine, *verdicts.arrays, 0, None, None, None,
    )  # fmt: skip
    _launch(executor, ready, values, s.indptr.dtype, given)
    verdicts.tell(s.verdicts)
    if x is not s.x:
        executor.copy_into(s.x, x)


def determinants_of(executor: BlockExecutor, layout: Layout, values: Array) -> Determinants:
    """Return the determinants of all matrices."""
    matrices, dtype = int(values.shape[0]), values.dtype
    values = executor.xp.ascontiguousarray(values)
    ready = _ready(executor, layout, values)
    found = [executor.zeros((matrices,), kind) for kind in (np.uint8, np.dtype(dtype), np.float64)]
    none = None
    given = (
        none, 0, int(values.shape[1]), none, none, values, none, none, 0, none, none, 0, none, 0,
        none, none, none, none, none, 1, *found,
    )  # fmt: skip
    _launch(executor, ready, values, np.int32, given)
    return Determinants(*executor.transfer(*found).read())


def _launch(
    executor: BlockExecutor,
    ready: _Ready,
    values: Array,
    index: Any,
    arguments_of_kernel: tuple[Any, ...],
) -> None:
    """Launch the chosen kernel, in several parts if memory is short."""
    chosen, matrices = ready.chosen, int(values.shape[0])
    made = chosen.layout
    together = max(1, min(matrices, ARENA // max(chosen.each * values.dtype.itemsize, 1)))
    shape: tuple[Any, ...] = ()
    if not chosen.is_in_registers:
        arena = executor.allocate((max(chosen.each * together, 1),), values.dtype)
        shape = (*made.shape, made.size, ready.order, arena, chosen.each)
    for first in range(0, matrices, together):
        blocks = min(together, matrices - first)
        arguments = (first, *shape, ready.places, int(made.repeats), *arguments_of_kernel)
        executor.blocks.launch_template(
            chosen.kernel, blocks, arguments, values.dtype, index, chosen.constants, chosen.shared
        )
