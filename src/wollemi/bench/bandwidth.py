"""What memory can do at most, measured beside what is compared with it.

Reads are taken over as many bytes as the operation moves: a cache of hundreds of megabytes would
otherwise make the limit of a large array no limit for a small one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.executor import Array, Executor
from ..core.operation import Cost, Operation
from ..core.operations import vector
from .clocks import capture_by_cupy
from .flush import cache_bytes
from .peers import Absent, Peer
from .problem import Facts, Offer, Problem

#: Below this many bytes a call's own overhead hides the memory.
FEWEST_BYTES = 1 << 20

#: This many bytes, or so many times the last cache, leave every cache behind.
MANY_BYTES, TIMES_CACHE = 1 << 28, 8

#: Columns of the blocks that are read: kernels of one column may be another text.
COLUMNS = 1


class Streams(Problem):
    """Calls that move a known number of bytes and do nothing else of note.

    Several ways to read are tried, because the limit is the best of them; the *triad* reads two
    numbers and writes one, the *copy* reads one and writes one.

    Parameters
    ----------
    nbytes : int
        About how many bytes.
    """

    def __init__(self, nbytes: int) -> None:
        most = max(MANY_BYTES, TIMES_CACHE * cache_bytes())
        self.nbytes = min(max(nbytes, FEWEST_BYTES), most)
        self.S = sp.csr_array((0, 0))

    def ours(self, executor: Executor) -> list[Offer]:
        """Return the streams of an executor, and NumPy's where it shares the memory."""
        nbytes, found = self.nbytes, []
        one = _ones(executor, nbytes // 8)
        value = executor.zeros((COLUMNS,), np.float64)
        if executor.supports(vector.norm):
            found.append(_run(executor, "read: norm", vector.norm, one.nbytes, one, value))
        x, y = _ones(executor, nbytes // 16), _ones(executor, nbytes // 16)
        if executor.supports(vector.dot):
            found.append(_run(executor, "read: dot", vector.dot, 2 * x.nbytes, x, y, value))
        found.append(_offer(executor, "copy", 2 * x.nbytes, lambda: executor.copy_into(y, x)))
        if executor.supports(vector.axpby):
            # times 0 is not read
            moved = 2 * x.nbytes
            found.append(_run(executor, "copy: axpby", vector.axpby, moved, x, y, 1.0, 0.0))
            x3, y3 = _ones(executor, nbytes // 24), _ones(executor, nbytes // 24)
            moved = 3 * x3.nbytes
            found.append(_run(executor, "triad: axpby", vector.axpby, moved, x3, y3, 1e-9, 1.0))
        if executor.xp is np:
            v, w = (np.ones(nbytes // 16) for _ in range(2))
            call = _offer(executor, "read: numpy.dot", 2 * v.nbytes, lambda: np.dot(v, w))
            found.append(call)
        return found

    def theirs(self, peer: Peer) -> list[Offer]:
        """Return nothing: the memory is nobody's."""
        raise Absent("memory is measured by the executor")

    def wrong(self, result: Any) -> str:
        """Return nothing: there is no result."""
        return ""


def _ones(executor: Executor, size: int) -> Array:
    return executor.from_host(np.ones((size, COLUMNS)))


def _run(executor: Executor, name: str, operation: Operation, moved: int, *arguments: Any) -> Offer:
    return _offer(executor, name, moved, lambda: executor.run(operation, *arguments))


def _offer(executor: Executor, name: str, moved: int, call: Callable[[], Any]) -> Offer:
    return Offer(
        name,
        lambda: call,
        executor.synchronize,
        lambda _: None,
        facts=lambda: Facts(cost=Cost(moved, 0)),
        capture=capture_by_cupy,
    )
