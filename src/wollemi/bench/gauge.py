"""The bandwidth of a memory, from streams that were timed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.executor import Executor
from .bandwidth import FEWEST_BYTES, Streams
from .problem import Entrant
from .station import Ready, Seat, Station
from .timing import BATCHES, Timing, interleave, pace_of

#: Sizes between a number of bytes and its double that are told apart.
SIZES = 4


def rates_of(streams: Sequence[Ready], times: Mapping[str, Timing]) -> tuple[dict[str, float], Any]:
    """Return the best bandwidth of each kind, and of reads that of every round."""
    found: dict[str, float] = {}
    reads: Any = None
    for ready in streams:
        cost, timing = ready.facts.cost, times.get(ready.name)
        if cost is None or timing is None:
            continue
        kind = ready.name.partition(":")[0]
        rates = cost.bytes / np.array(timing.samples)
        found[kind] = max(float(np.median(rates)), found.get(kind, 0.0))
        if kind == "read":
            reads = rates if reads is None else np.maximum(reads, rates)
    return found, reads


class Gauge:
    """The bandwidth of a GPU's memory, measured once for each size.

    Nobody else uses it meanwhile, so that it need not be measured anew beside every contest.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], dict[str, float]] = {}

    def rates(self, executor: Executor, nbytes: int, cold: bool) -> dict[str, float]:
        """Return bytes per second of ``read``, ``triad`` and ``copy`` of about so many bytes."""
        step = round(SIZES * math.log2(max(nbytes, FEWEST_BYTES)))
        if (step, cold) not in self._known:
            self._known[step, cold] = _measured(executor, round(2 ** (step / SIZES)), cold)
        return self._known[step, cold]


def _measured(executor: Executor, nbytes: int, cold: bool) -> dict[str, float]:
    station = Station()
    station.load(Streams(nbytes))
    streams = station.prepare(Entrant("memory", executor=executor, gpu=True))
    seats = [Seat(station, r.name, pace_of(r.facts.method, True)) for r in streams if not r.trouble]
    times = interleave(seats, batches=BATCHES, cold=cold, lost={})
    station.clear()
    return rates_of(streams, times)[0]
