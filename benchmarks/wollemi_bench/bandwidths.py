"""The bandwidth of a memory, from streams that were timed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wollemi.core.executor import Executor

from .bandwidth import Streams, within_reason
from .flush import cache_bytes
from .problem import Library
from .runner import Ready, Runner, Slot
from .timing import Timing, interleave, pace_of

#: Sizes between a number of bytes and its double that are told apart.
SIZES = 4

#: Rounds for each of them on a GPU.
ROUNDS = 7


@dataclass(frozen=True)
class Known:
    """The measurements of a size.

    Attributes
    ----------
    rates : dict of str to float
        Bytes per second of ``read``, ``triad`` and ``copy``.
    fastest : str
        The stream that read fastest.
    """

    rates: dict[str, float]
    fastest: str


class Bandwidths:
    """The bandwidth of memories in one run, for each size.

    All streams are timed the first time. Then a host's memory, which it may share with others, is
    read in the rounds of every contest by the fastest stream; a GPU's memory is its own, and one
    measurement holds.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], Known] = {}

    def of_gpu(self, executor: Executor, nbytes: int, cold: bool) -> dict[str, float]:
        """Return the rates of about this number of bytes, measured now or before."""
        nbytes = within_reason(nbytes, int(executor.properties.get("cache", 0)))
        key = _size(nbytes), cold
        if key not in self._known:
            runner = Runner()
            every = Streams(nbytes)
            runner.load(every)
            streams = runner.prepare(Library("memory", executor=executor, gpu=True))
            slots = [
                Slot(runner, ready.name, pace_of(ready.facts.method, gpu=True))
                for ready in streams
                if not ready.trouble
            ]
            times = interleave(slots, batches=ROUNDS, cold=cold, lost={})
            rates, _ = self.note(every, cold, streams, times)
            runner.clear()
            return rates
        return self._known[key].rates

    def streams(self, nbytes: int, cold: bool) -> Streams:
        """Return the streams to time with a call that moves this number of bytes."""
        nbytes = within_reason(nbytes, cache_bytes())
        known = self._known.get((_size(nbytes), cold))
        return Streams(nbytes, known.fastest if known else "")

    def note(
        self, moved: Streams, cold: bool, streams: Sequence[Ready], times: Mapping[str, Timing]
    ) -> tuple[dict[str, float], Any]:
        """Return the rates and, for reads, the rate of every round; and remember the fastest."""
        rates, reads = rates_of(streams, times)
        key = _size(moved.nbytes), cold
        if key in self._known:
            return self._known[key].rates | rates, reads
        timed = [ready for ready in streams if ready.name in times]
        readers = [ready for ready in timed if _kind(ready) == "read"]
        if readers:
            fastest = max(readers, key=lambda r: _rates(r, times[r.name]).mean())
            self._known[key] = Known(rates, fastest.name)
        return rates, reads


def rates_of(streams: Sequence[Ready], times: Mapping[str, Timing]) -> tuple[dict[str, float], Any]:
    """Return the best bandwidth of each kind, and of reads that of every round."""
    found: dict[str, float] = {}
    reads: Any = None
    for ready in streams:
        if ready.name not in times:
            continue
        rates = _rates(ready, times[ready.name])
        found[_kind(ready)] = max(float(np.median(rates)), found.get(_kind(ready), 0.0))
        if _kind(ready) == "read":
            reads = rates if reads is None else np.maximum(reads, rates)
    return found, reads


def _kind(stream: Ready) -> str:
    return stream.name.partition(":")[0]


def _rates(stream: Ready, timing: Timing) -> Any:
    assert stream.facts.cost is not None
    return stream.facts.cost.bytes / np.array(timing.samples)


def _size(nbytes: int) -> int:
    """Return one of the sizes that are told apart."""
    return round(2 ** (round(SIZES * math.log2(max(nbytes, 1))) / SIZES))
