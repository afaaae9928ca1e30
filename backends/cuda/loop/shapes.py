"""Choose the launch shape of the persistent kernel, and its arrays in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..runtime.device import CudaDevice
from .schedule import Phase, Schedule, all_vectors
from .shared_memory import GridShape, live_in, matrices_of, matrix_bytes, pattern_bytes, small_bytes

#: Work-items per block of the persistent kernel on a grid. At 64^3, CG took 9.8 microseconds per
#: iteration with 512 work-items, 10.4 with 1024 and 17.5 with 256; BiCGSTAB spills registers with
#: 1024 and took 60 instead of 18 (H200). With at most one row per work-item in blocks of 256, more
#: work-items brought no gain (32^3).
SMALL_BLOCK, LARGE_BLOCK = 256, 512
#: Blocks per cluster: the number of multiprocessors that share a hardware barrier.
CLUSTER = 16
#: Upper bounds of work-items per block of a cluster and of rows per work-item. With two rows at
#: 32^3, CG took 5.0 microseconds and BiCGSTAB 10.2 (on a grid 6.1 and 11.6); with four rows and 512
#: work-items 5.7 and 15.4. GMRES uses one row: with two it took 25 microseconds, on a grid 16
#: (H200).
CLUSTER_BLOCK, CLUSTER_ROWS = 1024, 2
#: Upper bound of rows per work-item on a grid: it keeps its part of all vectors in registers.
MOST_ROWS = 8
#: On a grid, gathers compute their elements from several vectors up to this many rows. At 40^3
#: BiCGSTAB took 12.4 microseconds with and 13.4 without it, at 48^3 14.2 and 14.8; at 64^3 CG took
#: 9.8 and 8.5. In a cluster, barriers cost less than gathers: at 16^3 CGS took 4.2 with and 3.4
#: without it (H200).
REMATERIALIZED_ROWS = 1 << 17
#: Registers of a work-item reserved for other uses than its parts of vectors. With this value,
#: BiCGSTAB at 64^3 keeps two vectors in shared memory, spills nothing and takes 17.9 microseconds;
#: it took 22.6 when 56 bytes were spilled (H200).
OTHER_REGISTERS = 104
#: Registers of a multiprocessor.
REGISTERS = 1 << 16
#: Shared memory, in bytes, that kernels declare statically.
STATIC_SHARED = 8 << 10


def shapes(device: CudaDevice, phases: list[Phase], rows: int) -> Iterator[GridShape]:
    """Yield the possible launch shapes of a kernel, best first; the last one always works."""
    each = 1 if any(phase.arnoldi for phase in phases) else CLUSTER_ROWS
    if device.capability >= (9, 0) and rows <= CLUSTER * CLUSTER_BLOCK * each:
        block = SMALL_BLOCK
        while block < CLUSTER_BLOCK and rows > block * CLUSTER:
            block *= 2
        yield GridShape(block, CLUSTER, -(-rows // (block * CLUSTER)), CLUSTER)
    block = SMALL_BLOCK if rows <= SMALL_BLOCK * device.multiprocessors else LARGE_BLOCK
    blocks = max(1, min(-(-rows // block), device.multiprocessors))
    yield GridShape(block, blocks, -(-rows // (block * blocks)))


def with_shared(device: CudaDevice, planned: Schedule, shape: GridShape) -> GridShape:
    """Return a shape extended by the arrays to keep in shared memory.

    Vectors that do not fit into registers come first, because spilled registers go to the L2 cache
    at every barrier. The basis of GMRES follows, then matrices.
    """
    phases, slots = planned.phases, shape.rows * shape.block
    free_bytes = device.shared_bytes - STATIC_SHARED
    kept = [v for phase in phases for v in all_vectors(phase)]
    itemsize = max(int(v.dtype.itemsize) for v in kept)
    each = slots * itemsize
    matrices = sum(matrix_bytes(matrix, slots) for matrix in matrices_of(phases))
    patterns = sum(pattern_bytes(matrix, slots) for matrix in matrices_of(phases))
    bases = [phase.arnoldi for phase in phases if phase.arnoldi is not None]
    free_bytes -= sum(small_bytes(arnoldi, shape, device.warp) for arnoldi in bases)
    free = max(REGISTERS // shape.block - OTHER_REGISTERS, 0)
    registers = shape.rows * itemsize // 4
    wanted = max(0, -(-(len(live_in(planned)) * registers - free) // registers))
    if bases:
        size, each = int(bases[0].basis.shape[0]), slots * int(bases[0].basis.dtype.itemsize)
        basis = max(0, min(size, (free_bytes - patterns) // each))
        # A matrix is read once per iteration, a basis vector twice.
        whole = basis == size and size * each + matrices <= free_bytes
        return replace(shape, basis=basis, matrices=whole)
    if matrices > free_bytes:
        return replace(shape, vectors=min(wanted, max(free_bytes - patterns, 0) // each))
    return replace(shape, matrices=True, vectors=min(wanted, (free_bytes - matrices) // each))


def rematerializes(shape: GridShape, rows: int) -> bool:
    """Return whether gathers compute their elements from several vectors."""
    return not shape.cluster and rows <= REMATERIALIZED_ROWS
