"""Solves of the systems of a batch: one kernel, a block for each system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ...gpu.batch_verdicts import NativeVerdicts
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


@dataclass(frozen=True)
class _Ready:
    """A kernel that is loaded.

    Attributes
    ----------
    made : Made
        Its memory and its first arguments.
    function : object
        CuPy's.
    """

    made: Made
    function: Any


#: The kernel of a member's programs, None where there is none.
_READY: WeakKeyDictionary[MemberPrograms, _Ready | None] = WeakKeyDictionary()


def solve(executor: CudaExecutor, member: MemberPrograms, systems: Systems) -> bool:
    """Solve all systems; return whether there is a kernel of the member's programs.

    A multiprocessor takes the next system as soon as a block has finished.
    """
    if member not in _READY:
        _READY[member] = _ready(executor, member)
    ready = _READY[member]
    if ready is None:
        return False
    made, count, xp = ready.made, systems.count, executor.xp
    tolerances = systems.tolerances.native(executor)
    matrix = 0 if systems.matrix is None else executor.from_host(systems.matrix)
    verdicts = NativeVerdicts(executor, count)
    at_once = count if not made.arena else max(1, min(count, ARENA // made.arena))
    arena = executor.allocate((max(made.arena * at_once, 1),), np.uint8)
    values, b, x = (xp.ascontiguousarray(a) for a in (systems.values, systems.b, systems.x))
    given = [
        address(values), matrix if systems.matrix is None else address(matrix), systems.width,
        address(b), address(x), int(systems.started), address(tolerances.relative),
        address(tolerances.absolute), tolerances.apart, systems.limit,
        *(np.float64(v) for v in (systems.least, systems.most, systems.least_norm)),
        *(address(a) for a in verdicts.arrays), address(arena),
    ]  # fmt: skip
    for first in range(0, count, at_once):
        blocks = min(at_once, count - first)
        arguments = [*made.kernel.values, first, *given]
        executor.launch_blocks(ready.function, blocks, made.shape.block, arguments, made.shared)
    verdicts.tell(systems.verdicts)
    if x is not systems.x:
        executor.copy_into(systems.x, x)
    return True


def _ready(executor: CudaExecutor, member: MemberPrograms) -> _Ready | None:
    device = executor.device
    try:
        programs = recorded(member)
        needs = needs_of(member, programs)
        shape = shape_for(needs, warp=device.warp, shared=device.shared_bytes - STATIC_SHARED)
        made = system_kernel(member, programs, shape, warp=device.warp)
    except Unsuited:
        return None
    function = loaded(device, made.kernel)
    if made.shared:
        device.allow_shared(function, made.shared)
    return _Ready(made, function)
