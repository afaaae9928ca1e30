"""The bandwidth of the memory, measured in the same rounds as the contenders.

Reads are taken over as many bytes as the operation moves: a cache of hundreds of megabytes would
otherwise make the limit of a large array no limit for a small one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from wollemi.core.executor import Array, Executor
from wollemi.core.operation import Cost, Operation
from wollemi.core.operations import vector

from .clocks import capture_by_cupy
from .peers import Absent, Peer
from .problem import GPUS, Offer, OfferFacts, Problem

#: Below this many bytes a call's own overhead hides the memory.
FEWEST_BYTES = 1 << 20

#: This number of bytes, or this multiple of the last cache, exceeds every cache.
MANY_BYTES, TIMES_CACHE = 1 << 28, 8

#: Columns of the blocks that are read: kernels of one column may be another text.
COLUMNS = 1


def within_reason(nbytes: int, cache: int) -> int:
    """Return the bytes to move to measure the bandwidth of a size, beyond a cache of that size.

    More of them would only take longer, fewer would be over before they have begun.
    """
    return min(max(nbytes, FEWEST_BYTES), max(MANY_BYTES, TIMES_CACHE * cache))


class Streams(Problem):
    """Calls that move a known number of bytes and do nothing else of note.

    Several ways to read are tried, because the limit is the best of them; the *triad* reads two
    numbers and writes one, the *copy* reads one and writes one.

    Parameters
    ----------
    nbytes : int
        About how many bytes.
    only : str
        The one stream that is wanted; "" for all of them.
    """

    def __init__(self, nbytes: int, only: str = "") -> None:
        self.nbytes, self.only = nbytes, only
        self.S = sp.csr_array((0, 0))

    def ours(self, executor: Executor) -> list[Offer]:
        """Return the streams of an executor, and NumPy's where it shares the memory."""
        return [make(executor) for name, make in self._known(executor) if self.only in ("", name)]

    def _known(self, executor: Executor) -> list[tuple[str, Callable[[Executor], Offer]]]:
        known: list[tuple[str, Callable[[Executor], Offer]]] = []
        if executor.supports(vector.norm):
            known.append(("read: norm", self._norm))
        if executor.supports(vector.dot):
            known.append(("read: dot", self._dot))
        known.append(("copy", self._copy))
        if executor.supports(vector.axpby):
            known += [("copy: axpby", self._copy_by_axpby), ("triad: axpby", self._triad)]
        if executor.xp is np:
            known.append(("read: numpy.dot", self._numpy_dot))
        return known

    def _norm(self, executor: Executor) -> Offer:
        one, value = _ones(executor, self.nbytes // 8), executor.zeros((COLUMNS,), np.float64)
        return _run(executor, "read: norm", vector.norm, one.nbytes, one, value)

    def _dot(self, executor: Executor) -> Offer:
        x, y = self._pair(executor)
        value = executor.zeros((COLUMNS,), np.float64)
        return _run(executor, "read: dot", vector.dot, 2 * x.nbytes, x, y, value)

    def _copy(self, executor: Executor) -> Offer:
        x, y = self._pair(executor)
        return _offer(executor, "copy", 2 * x.nbytes, lambda: executor.copy_into(y, x))

    def _copy_by_axpby(self, executor: Executor) -> Offer:
        x, y = self._pair(executor)
        # times 0 is not read
        return _run(executor, "copy: axpby", vector.axpby, 2 * x.nbytes, x, y, 1.0, 0.0)

    def _triad(self, executor: Executor) -> Offer:
        x, y = _ones(executor, self.nbytes // 24), _ones(executor, self.nbytes // 24)
        return _run(executor, "triad: axpby", vector.axpby, 3 * x.nbytes, x, y, 1e-9, 1.0)

    def _numpy_dot(self, executor: Executor) -> Offer:
        x, y = (np.ones(self.nbytes // 16) for _ in range(2))
        return _offer(executor, "read: numpy.dot", 2 * x.nbytes, lambda: np.dot(x, y))

    def _pair(self, executor: Executor) -> tuple[Array, Array]:
        return _ones(executor, self.nbytes // 16), _ones(executor, self.nbytes // 16)

    def theirs(self, peer: Peer) -> list[Offer]:
        """Return nothing: the memory has no library."""
        raise Absent("memory is measured by the executor")

    def wrong(self, result: Any) -> str:
        """Return nothing: there is no result."""
        return ""


def _ones(executor: Executor, size: int) -> Array:
    if executor.backend in GPUS:  # hundreds of megabytes take a second on their way there
        return executor.xp.ones((size, COLUMNS))
    return executor.from_host(np.ones((size, COLUMNS)))


def _run(executor: Executor, name: str, operation: Operation, moved: int, *arguments: Any) -> Offer:
    return _offer(executor, name, moved, lambda: executor.run(operation, *arguments))


def _offer(executor: Executor, name: str, moved: int, call: Callable[[], Any]) -> Offer:
    return Offer(
        name,
        lambda: call,
        executor.synchronize,
        lambda _: None,
        facts=lambda: OfferFacts(cost=Cost(moved, 0)),
        capture=capture_by_cupy,
    )
