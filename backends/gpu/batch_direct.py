"""Direct solves of the systems of a batch: a block has a matrix, in registers or in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.batch.factors import Determinants, FactoredSystems
from ...core.batch.systems import UNDECIDED
from ..simt import batch_kernels as simt
from ..unified.wrappers import SimtKernel

if TYPE_CHECKING:
    from ...core.batch.factors import Layout
    from ...core.executor import Array
    from .base import GpuExecutor

Numbers = np.ndarray[Any, Any]

#: Bytes of a row that a work-item keeps in registers.
ROW_BYTES = 512

#: Steps of an elimination that share their text: ``together`` in ``batch_dense.hpp``.
STEPS_TOGETHER = 8

#: 32-bit registers that a work-item has besides a row.
OTHER_REGISTERS = 48

#: Registers of a multiprocessor.
REGISTERS = 1 << 16

#: Bytes of memory of a block that every device has.
SHARED_BYTES = 48 << 10

#: Bytes of memory for matrices that do not fit into memory of a block.
ARENA = 2**30

#: Multiplications of a step of an elimination from which on a block has so many work-items.
BLOCKS = ((1024, 256), (128, 128))
SMALL_BLOCK = 64

#: Rows up to which a lane has so many rows of a tridiagonal system.
LANE_ROWS = ((16, 2), (256, 8), (512, 16))

#: Bytes of a diagonal in the registers of a lane.
MOST_ROW_BYTES = 128

#: Entries of an average row from which on so many lanes share it.
LANES = ((16, 8), (4, 2))


@dataclass(frozen=True)
class Chosen:
    """A kernel and its memory.

    Attributes
    ----------
    kernel : SimtKernel
        The kernel.
    constants : dict
        For which it is made.
    layout : Layout
        Positions of entries.
    each : int
        Elements of the arena for a block; 0 where it needs none.
    """

    kernel: SimtKernel
    constants: dict[str, int]
    layout: Layout
    each: int

    @property
    def is_in_registers(self) -> bool:
        """Whether rows are kept in registers."""
        return "N" in self.constants


def chosen_kernel(layout: Layout, dtype: Any, entries: int, warp: int) -> Chosen:
    """Return the kernel for matrices of a layout.

    Parameters
    ----------
    layout : Layout
        Of the factors.
    dtype : dtype
        Of the values.
    entries : int
        That a matrix stores.
    warp : int
        Lanes of a wave.
    """
    n, itemsize = layout.n, np.dtype(dtype).itemsize
    lanes = next((count for length, count in LANES if entries >= length * n), 1)
    distance = (n + STEPS_TOGETHER - 1) | 1
    tile = n * (distance + 5) * itemsize
    if layout.is_dense and n * itemsize <= ROW_BYTES and tile <= SHARED_BYTES - 1024:
        block = -(-n // warp) * warp
        registers = n * itemsize // 4 + OTHER_REGISTERS
        resident = max(1, REGISTERS // (registers * block))
        kernel = simt.batch_dense(block, resident)
        return Chosen(kernel, {"N": n, "L": lanes}, layout.with_distance(distance), 0)
    if layout.is_dense:
        layout = layout.with_distance(n | 1)
    work = layout.lower * (layout.lower + layout.upper)
    block = next((items for least, items in BLOCKS if work >= least), SMALL_BLOCK)
    pivots = -(-4 * n // itemsize)
    each = layout.size + 4 * n + pivots
    each += each % 2
    fits = each * itemsize <= SHARED_BYTES - 1024
    constants = {"CELLS": each if fits else 0, "B": block, "L": lanes}
    return Chosen(simt.batch_band(block), constants, layout, 0 if fits else each)


@dataclass(frozen=True)
class Shared:
    """How lanes share a tridiagonal system.

    Attributes
    ----------
    rows, lanes : int
        Rows of a lane, and lanes of a system.
    block : int
        Work-items of a block.
    places : array of int32, shape (nnz,)
        The cell of each entry in memory of the block.
    """

    rows: int
    lanes: int
    block: int
    places: Numbers


def tridiagonal_shares(layout: Layout, dtype: Any, warp: int) -> Shared | None:
    """Return how lanes share a tridiagonal system, or None where a matrix is none of this kind.

    The matrix has three diagonals in its own order, no entry twice, and fits the registers of a
    wave.
    """
    n, itemsize = layout.n, np.dtype(dtype).itemsize
    own_order = np.array_equal(layout.order, np.arange(n))
    if n < 2 or max(layout.lower, layout.upper) > 1 or not own_order or layout.repeats:
        return None
    rows = next((rows for most, rows in LANE_ROWS if n <= most), None)
    if rows is None or rows * itemsize > MOST_ROW_BYTES:
        return None
    lanes = 1 << (-(-n // rows) - 1).bit_length()
    cells = (4 * rows + 2) * lanes * itemsize * (warp // lanes)
    block = next((b for b in (128, 64) if b // warp * cells <= SHARED_BYTES - 1024), None)
    if block is None:
        return None
    row, column = layout.rows_and_columns
    places = row // rows * (3 * rows + 1) + row % rows * 3 + column - row + 1
    return Shared(rows, lanes, block, places.astype(np.int32))


def solve_directly(executor: GpuExecutor, layout: Layout, systems: FactoredSystems) -> None:
    """Factorize all matrices and solve their systems; verdicts are written to ``systems``."""
    dtype, warp = systems.values.dtype, executor.device.warp
    shared = None if systems.started else tridiagonal_shares(layout, dtype, warp)
    if shared is None:
        _factorize_and_solve(executor, layout, systems)
        return
    _solve_tridiagonal(executor, layout, shared, systems)
    left = np.flatnonzero(systems.codes == UNDECIDED)
    if left.size:
        _with_pivots(executor, layout, systems, left)


def _with_pivots(
    executor: GpuExecutor, layout: Layout, systems: FactoredSystems, left: Numbers
) -> None:
    """Solve the systems that elimination without pivots left undecided."""
    places, s = executor.from_host(left), systems
    part = replace(
        s, matrix=s.matrix[left], each_own=False, b=s.b[places], x=s.x[places],
        relative=s.relative[left], absolute=s.absolute[left], codes=s.codes[left],
        iterations=s.iterations[left], norms=s.norms[left], thresholds=s.thresholds[left],
    )  # fmt: skip
    _factorize_and_solve(executor, layout, part)
    s.x[places] = part.x
    s.codes[left], s.iterations[left] = part.codes, part.iterations
    s.norms[left], s.thresholds[left] = part.norms, part.thresholds


class _Verdicts:
    """The verdicts of systems on the device."""

    def __init__(self, executor: GpuExecutor, systems: FactoredSystems) -> None:
        self.executor, self.systems = executor, systems
        s, count = systems, systems.codes.size
        self.arrays = [executor.allocate((count,), a.dtype) for a in (s.codes, s.iterations)]
        self.arrays += [executor.allocate((count,), np.float64) for _ in range(2)]

    def clear(self) -> None:
        """Set the numbers of systems that no kernel will decide."""
        self.arrays[1].fill(0)
        for array in self.arrays[2:]:
            array.fill(np.nan)

    def fetch(self) -> None:
        """Copy them to the host."""
        s = self.systems
        targets = (s.codes, s.iterations, s.norms, s.thresholds)
        found = self.executor.to_host_together(*self.arrays)
        for target, array in zip(targets, found, strict=True):
            target[...] = array


def _solve_tridiagonal(
    executor: GpuExecutor, layout: Layout, shared: Shared, systems: FactoredSystems
) -> None:
    """Solve systems without exchanges of rows; a residual that is too large leaves one open."""
    s, count = systems, systems.codes.size
    entries = int(s.values.shape[1])
    equal = s.relative.strides == s.absolute.strides == (0,)
    tolerances = [a[:1] if equal else a for a in (s.relative, s.absolute)]
    relative, absolute, limits, places = (
        executor.from_host(np.ascontiguousarray(a)) for a in (*tolerances, s.limits, shared.places)
    )
    verdicts = _Verdicts(executor, s)
    xp = executor.xp
    x = xp.ascontiguousarray(s.x)
    matrix = None if s.each_own else executor.from_host(np.ascontiguousarray(s.matrix))
    given = (
        count, layout.n, places, matrix, entries, xp.ascontiguousarray(s.values),
        xp.ascontiguousarray(s.b), x, relative, absolute, int(not equal), limits, *verdicts.arrays,
    )  # fmt: skip
    together = shared.block // shared.lanes
    executor.launch_simt(
        simt.batch_tridiagonal(shared.block), -(-count // together), given, s.values.dtype,
        index=s.indptr.dtype, R=shared.rows, L=shared.lanes,
    )  # fmt: skip
    verdicts.fetch()
    if x is not s.x:
        executor.copy_into(s.x, x)


def _factorize_and_solve(executor: GpuExecutor, layout: Layout, systems: FactoredSystems) -> None:
    s = systems
    starts = np.searchsorted(s.matrix, np.arange(int(s.values.shape[0]) + 1)).astype(np.int64)
    verdicts = _Verdicts(executor, s)
    verdicts.clear()
    xp = executor.xp
    b, x = xp.ascontiguousarray(s.b), xp.ascontiguousarray(s.x)
    host = [executor.from_host(np.ascontiguousarray(a)) for a in (s.relative, s.absolute, s.limits)]
    given = (
        s.indptr, s.indices, xp.ascontiguousarray(s.values), b, x, *host, s.refine,
        *verdicts.arrays,
    )  # fmt: skip
    _launch(executor, layout, starts, given, (0, None, None, None))
    verdicts.fetch()
    if x is not s.x:
        executor.copy_into(s.x, x)


def determinants_of(executor: GpuExecutor, layout: Layout, values: Array) -> Determinants:
    """Return the determinants of matrices."""
    matrices, dtype = int(values.shape[0]), values.dtype
    starts = np.zeros(matrices + 1, np.int64)
    empty = executor.zeros((layout.n + 1,), np.int32)
    none, limits = None, executor.zeros((3,), np.float64)
    found = [executor.zeros((matrices,), kind) for kind in (np.uint8, np.dtype(dtype), np.float64)]
    values = executor.xp.ascontiguousarray(values)
    given = (empty, empty, values, none, none, none, none, limits, 0, none, none, none, none)
    _launch(executor, layout, starts, given, (1, *found))
    return Determinants(*executor.to_host_together(*found))


def _launch(
    executor: GpuExecutor, layout: Layout, starts: Numbers, given: tuple[Any, ...], told: Any
) -> None:
    """Launch the kernel that suits the matrices, in parts where memory is short."""
    values, indptr = given[2], given[0]
    matrices, entries = (int(size) for size in values.shape)
    chosen = chosen_kernel(layout, values.dtype, entries, executor.device.warp)
    made = chosen.layout
    common = (
        executor.from_host(made.places), int(made.repeats), executor.from_host(starts), entries,
        *given, *told,
    )  # fmt: skip
    together = max(1, min(matrices, ARENA // max(chosen.each * values.dtype.itemsize, 1)))
    shape: tuple[Any, ...] = ()
    if not chosen.is_in_registers:
        arena = executor.allocate((max(chosen.each * together, 1),), values.dtype)
        order = executor.from_host(made.order)
        shape = (*made.shape, made.size, order, arena, chosen.each)
    for first in range(0, matrices, together):
        blocks = min(together, matrices - first)
        executor.launch_simt(
            chosen.kernel, blocks, (first, *shape, *common), values.dtype, index=indptr.dtype,
            **chosen.constants,
        )  # fmt: skip
