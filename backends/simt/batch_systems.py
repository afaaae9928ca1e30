"""Iterative solves of batches: one kernel, one system per block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from .batch_programs import UnsuitedProgram, needs_of, recorded
from .batch_shape import shape_for
from .batch_text import SizedKernel, system_kernel
from .batch_verdicts import NativeVerdicts

if TYPE_CHECKING:
    from ...core.batch.systems import MemberPrograms, Systems
    from .batch_executor import BlockExecutor

#: Bytes of device memory for the vectors of systems that do not fit into shared memory.
ARENA = 2**30


@dataclass(frozen=True)
class _Ready:
    """A loaded kernel.

    Attributes
    ----------
    made : SizedKernel
        The kernel's text, memory and constant arguments.
    function : object
        The loaded function of the executor.
    """

    made: SizedKernel
    function: Any


#: The kernel for a member's programs, or None if it has no kernel.
_READY: WeakKeyDictionary[MemberPrograms, _Ready | None] = WeakKeyDictionary()


def solve(executor: BlockExecutor, member: MemberPrograms, systems: Systems) -> bool:
    """Solve all systems; return False if there is no kernel for the member's programs.

    The device starts the next system as soon as a block has finished.
    """
    if member not in _READY:
        _READY[member] = _ready(executor, member)
    ready = _READY[member]
    if ready is None:
        return False
    made, count, xp, address = ready.made, systems.count, executor.xp, executor.address
    tolerances = systems.tolerances.native(executor)
    matrix = None if systems.matrix is None else executor.from_host(systems.matrix)
    verdicts = NativeVerdicts(executor, count)
    at_once = count if not made.arena else max(1, min(count, ARENA // made.arena))
    arena = executor.allocate((max(made.arena * at_once, 1),), np.uint8)
    values, b, x = (xp.ascontiguousarray(a) for a in (systems.values, systems.b, systems.x))
    operands = [
        address(values), 0 if matrix is None else address(matrix), systems.width,
        address(b), address(x), int(systems.started), address(tolerances.relative),
        address(tolerances.absolute), tolerances.apart, systems.limit,
        *(np.float64(v) for v in (systems.least, systems.most, systems.least_norm)),
        *(address(a) for a in verdicts.arrays), address(arena),
    ]  # fmt: skip
    for first in range(0, count, at_once):
        blocks = min(at_once, count - first)
        arguments = [*made.kernel.values, first, *operands]
        executor.blocks.launch(ready.function, blocks, made.shape.block, arguments, made.shared)
    verdicts.tell(systems.verdicts)
    if x is not systems.x:
        executor.copy_into(systems.x, x)
    return True


def _ready(executor: BlockExecutor, member: MemberPrograms) -> _Ready | None:
    target = executor.blocks.target
    try:
        programs = recorded(member)
        shape = shape_for(needs_of(member, programs), target)
        made = system_kernel(member, programs, shape, target)
    except UnsuitedProgram:
        return None
    return _Ready(made, executor.blocks.load(made))
