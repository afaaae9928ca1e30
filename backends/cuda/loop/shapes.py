"""The launch shape of the one kernel of a small system, and its arrays in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..runtime.device import CudaDevice
from .schedule import Phase, Schedule, all_vectors
from .shared_memory import GridShape, live_in, matrices_of, matrix_bytes, pattern_bytes, small_bytes

#: Work-items of a block of the one kernel on a grid. At 64^3 CG took 9.8 microseconds an iteration
#: with 512, 10.4 with 1024 and 17.5 with 256; BiCGSTAB, which spills registers with 1024, took 60
#: and not 18 (H200). Up to one row for each of 256, more of them brought nothing (32^3).
SMALL_BLOCK, LARGE_BLOCK = 256, 512
#: Blocks of a cluster: as many multiprocessors as share one barrier in hardware.
CLUSTER = 16
#: Work-items of a block of a cluster at most, and rows that one may have: with two at 32^3 CG took
#: 5.0 microseconds and BiCGSTAB 10.2, on a grid 6.1 and 11.6; four rows of 512 work-items 5.7 and
#: 15.4. For GMRES it is one: with two it took 25, on a grid 16 (H200).
CLUSTER_BLOCK, CLUSTER_ROWS = 1024, 2
#: Rows of a work-item of a grid at most: it keeps its part of all vectors in registers.
MOST_ROWS = 8
#: Rows of a grid up to which gathers form their elements from several vectors. At 40^3 BiCGSTAB
#: took 12.4 microseconds by it and 13.4 without, at 48^3 14.2 and 14.8; at 64^3 CG 9.8 and 8.5. In
#: a cluster barriers cost less than gathers: at 16^3 CGS took 4.2 by it and 3.4 without (H200).
REMATERIALIZED_ROWS = 1 << 17
#: Registers of a work-item that are not for its parts of vectors: with them BiCGSTAB has two
#: vectors in shared memory at 64^3, spills nothing and takes 17.9 microseconds; 22.6 where 56 bytes
#: were spilled (H200).
OTHER_REGISTERS = 104
#: Registers of a multiprocessor.
REGISTERS = 1 << 16
#: Shared memory that kernels take without being told.
STATIC_SHARED = 8 << 10


def shapes(device: CudaDevice, phases: list[Phase], rows: int) -> Iterator[GridShape]:
    """Yield how a kernel may be launched, the best first; the last is always possible."""
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
    """Return a shape with the choice of arrays to keep in shared memory.

    Vectors for which there are no registers come first, because registers that are spilled go to
    the L2 cache at every barrier; then the basis of GMRES, then matrices.
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
        # A matrix is read once an iteration, a vector of the basis twice.
        whole = basis == size and size * each + matrices <= free_bytes
        return replace(shape, basis=basis, matrices=whole)
    if matrices > free_bytes:
        return replace(shape, vectors=min(wanted, max(free_bytes - patterns, 0) // each))
    return replace(shape, matrices=True, vectors=min(wanted, (free_bytes - matrices) // each))


def rematerializes(shape: GridShape, rows: int) -> bool:
    """Return whether gathers form their elements from several vectors."""
    return not shape.cluster and rows <= REMATERIALIZED_ROWS
