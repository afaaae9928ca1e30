"""What memory can do at most, measured beside what is compared with it.

Reads are taken over as many bytes as the operation moves: a cache of hundreds of megabytes would
otherwise make the limit of a large array no limit for a small one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.executor import Array, Executor
from ..core.operation import Operation
from ..core.operations import vector
from .timing import Contender

#: Below this many bytes a call's own overhead hides the memory.
FEWEST_BYTES = 1 << 20

#: Above this many bytes every cache is left behind.
MOST_BYTES = 1 << 30

#: Columns of the blocks that are read: kernels of one column may be another text.
COLUMNS = 1


@dataclass(frozen=True)
class Stream:
    """A contender that moves a known number of bytes and does nothing else of note."""

    kind: str
    contender: Contender
    bytes: int


def streams(executor: Executor, nbytes: int) -> list[Stream]:
    """Return what measures ``executor``'s memory over about ``nbytes``.

    Several ways to read are tried, because the limit is the best of them; the *triad* reads two
    numbers and writes one.
    """
    nbytes = min(max(nbytes, FEWEST_BYTES), MOST_BYTES)
    found = []
    one = _ones(executor, nbytes // 8)
    value = executor.zeros((COLUMNS,), np.float64)
    if executor.supports(vector.norm):
        found.append(_stream(executor, "read", "norm", vector.norm, one.nbytes, one, value))
    x, y = _ones(executor, nbytes // 16), _ones(executor, nbytes // 16)
    if executor.supports(vector.dot):
        found.append(_stream(executor, "read", "dot", vector.dot, 2 * x.nbytes, x, y, value))
    if executor.supports(vector.axpby):
        x, y = _ones(executor, nbytes // 24), _ones(executor, nbytes // 24)
        moved = 3 * x.nbytes
        found.append(_stream(executor, "triad", "axpby", vector.axpby, moved, x, y, 1e-9, 1.0))
    if executor.xp is np:
        x, y = (np.ones(nbytes // 16) for _ in range(2))
        call = Contender("read: numpy.dot", lambda: np.dot(x, y))
        found.append(Stream("read", call, 2 * x.nbytes))
    return found


def _ones(executor: Executor, size: int) -> Array:
    return executor.from_host(np.ones((size, COLUMNS)))


def _stream(
    executor: Executor, kind: str, name: str, operation: Operation, moved: int, *arguments: Any
) -> Stream:
    def call() -> None:
        executor.run(operation, *arguments)

    return Stream(kind, Contender(f"{kind}: {name}", call, executor.synchronize), moved)
