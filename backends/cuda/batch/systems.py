"""Solves of the systems of a batch: one kernel, a block for each system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ...gpu.tape import address
from ..loop.loop import loaded
from .text import Made, Unsuited, needs_of, recorded, shape_for, system_kernel

if TYPE_CHECKING:
    from ....core.batch.systems import MemberPrograms, Systems
    from ..runtime.executor import CudaExecutor

#: Bytes of memory for the vectors of systems that do not fit into shared memory.
ARENA = 2**30

#: Shared memory of a block that kernels take without being told.
STATIC_SHARED = 4 << 10

#: The kernel of a member's programs, None where there is none.
_MADE: WeakKeyDictionary[MemberPrograms, Made | None] = WeakKeyDictionary()


def solve(executor: CudaExecutor, member: MemberPrograms, systems: Systems) -> bool:
    """Solve all systems; return whether there is a kernel of the member's programs.

    A multiprocessor takes the next system as soon as a block has finished.
    """
    if member not in _MADE:
        _MADE[member] = _made(executor, member)
    made = _MADE[member]
    if made is None:
        return False
    count = systems.codes.size
    xp, device = executor.xp, executor.device
    host = (systems.matrix, systems.relative, systems.absolute)
    matrix, relative, absolute = (
        executor.from_host(np.ascontiguousarray(a, d))
        for a, d in zip(host, (np.int64, np.float64, np.float64), strict=True)
    )
    codes, iterations = executor.allocate((count,), np.uint8), executor.zeros((count,), np.int64)
    norms, thresholds = (executor.allocate((count,), np.float64) for _ in range(2))
    norms.fill(np.nan)
    thresholds.fill(np.nan)
    at_once = count if not made.arena else max(1, min(count, ARENA // made.arena))
    arena = executor.allocate((max(made.arena * at_once, 1),), np.uint8)
    function = loaded(device, made.kernel)
    if made.shared:
        device.allow_shared(function, made.shared)
    values, b, x = (xp.ascontiguousarray(a) for a in (systems.values, systems.b, systems.x))
    given = [address(a) for a in (values, matrix, b, x, relative, absolute)]
    limits = [np.float64(v) for v in (systems.least, systems.most, systems.least_norm)]
    results = [address(a) for a in (codes, iterations, norms, thresholds, arena)]
    for first in range(0, count, at_once):
        blocks = min(at_once, count - first)
        arguments = [*made.kernel.values, first, *given, int(systems.limit), *limits, *results]
        executor.launch_blocks(function, blocks, made.shape.block, arguments, made.shared)
    found = executor.to_host_together(codes, iterations, norms, thresholds)
    targets = (systems.codes, systems.iterations, systems.norms, systems.thresholds)
    for target, array in zip(targets, found, strict=True):
        target[...] = array
    if x is not systems.x:
        executor.copy_into(systems.x, x)
    return True


def _made(executor: Any, member: MemberPrograms) -> Made | None:
    device = executor.device
    try:
        programs = recorded(member)
        needs = needs_of(member, programs)
        shape = shape_for(needs, warp=device.warp, shared=device.shared_bytes - STATIC_SHARED)
        return system_kernel(member, programs, shape, warp=device.warp)
    except Unsuited:
        return None
