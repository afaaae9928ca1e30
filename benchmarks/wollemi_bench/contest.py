"""A contest: check every contender, then time the correct ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wollemi.core.executor import Executor
from wollemi.core.operation import Cost

from .bandwidth import Streams
from .load import OtherPrograms, busy
from .problem import GPUS, OURS, Library, Offer, OfferFacts, Problem
from .runner import Ready, Slot
from .timing import BATCH_SECONDS, BATCHES, Lost, Timing, interleave, pace_of
from .worker import Runners

#: Seconds that a contest may take after its warm-up.
BUDGET = 20.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of one contender.

    Attributes
    ----------
    name : str
        The contender's.
    timing : Timing or None
        None if it was not timed; ``trouble`` says why.
    trouble : str
        Empty, ``wrong: ...``, ``missed: ...``, ``failed: ...`` or ``absent: ...``.
    facts : OfferFacts
        Its other properties.
    share : float or None
        The time that reading the bytes of our call takes at least, as a share of the time taken:
        the median over the rounds, because the speed of a shared memory changes.
    beside : Timing or None
        The same with busy processes, if requested.
    """

    name: str
    timing: Timing | None = None
    trouble: str = ""
    facts: OfferFacts = field(default_factory=OfferFacts)
    share: float | None = None
    beside: Timing | None = None

    @property
    def setup_seconds(self) -> float | None:
        """The time of the first call and all before it beyond a call."""
        if self.timing is None or self.facts.first is None:
            return None
        return max(self.facts.first - self.timing.median, 0.0)


@dataclass(frozen=True)
class Settings:
    """How long to measure, and how.

    Attributes
    ----------
    batches, batch_seconds, budget
        As in :func:`~.timing.interleave`.
    cold : bool
        Empty the caches before each call.
    busy : int
        Time all again, on a CPU, while this number of other processes compute.
    """

    batches: int = BATCHES
    batch_seconds: float = BATCH_SECONDS
    budget: float = BUDGET
    cold: bool = False
    busy: int = 0


@dataclass(frozen=True)
class Contest:
    """Libraries that do one and the same thing, wollemi's first."""

    problem: Problem
    libraries: Sequence[Library]

    def run(self, runners: Runners, settings: Settings) -> tuple[list[Outcome], dict[str, float]]:
        """Check, time, and measure the memory in the same rounds.

        Returns
        -------
        list of Outcome
            One per contender in their order, wollemi's first.
        dict of str to float
            Bytes per second of ``read``, ``triad`` and ``copy``; empty if our cost is not known.
        """
        held: list[tuple[Any, Ready]] = []
        for runner, offers in runners.prepare(self.problem, self.libraries):
            held += ((runner, ready) for ready in offers)
        gpu, cost = self.libraries[0].gpu, held[0][1].facts.cost
        streams, memory = self._streams(runners, cost, settings.cold)
        troubles = {ready.name: ready.trouble for _, ready in held}
        contenders, probes = (
            [
                Slot(runner, ready.name, pace_of(ready.facts.method, gpu))
                for runner, ready in those
                if not ready.trouble
            ]
            for those in (held, memory)
        )
        lost: dict[str, str] = {}
        others = OtherPrograms(runners.processes())
        times = interleave(
            [*contenders, *probes],
            batches=settings.batches,
            batch_seconds=settings.batch_seconds,
            budget=settings.budget,
            cold=settings.cold,
            lost=lost,
        )
        # who uses the host's cores does not slow a GPU
        disturbed = [] if gpu else others.note()
        troubles |= {name: f"failed: {reason}" for name, reason in lost.items()}
        beside = {} if gpu else _beside(contenders, settings)
        found = [ready for _, ready in memory]
        bandwidth, reads = self._bandwidth(runners, cost, streams, found, times, settings.cold)
        outcomes = []
        for runner, ready in held:
            timing, facts, share = times.get(ready.name), ready.facts, None
            if timing is not None:
                facts = _facts(runner, ready)
                if cost is not None and reads is not None:
                    share = float(np.median(cost.bytes / np.array(timing.samples) / reads))
            outcomes.append(
                Outcome(
                    ready.name, timing, troubles[ready.name], facts, share, beside.get(ready.name)
                )
            )
        outcomes[0].facts.notes.extend(disturbed)
        for runner in dict.fromkeys(runner for runner, _ in (*held, *memory)):
            if runner is not None:
                runner.clear()
        return outcomes, bandwidth

    def _bandwidth(
        self,
        runners: Runners,
        cost: Cost | None,
        streams: Streams | None,
        found: list[Ready],
        times: dict[str, Timing],
        cold: bool,
    ) -> tuple[dict[str, float], Any]:
        """Return bytes per second by kind of access, and the rates of reading in every round."""
        if streams is not None:
            return runners.bandwidths.note(streams, cold, found, times)
        executor = self.libraries[0].executor
        if cost is None or executor is None:
            return {}, None
        bandwidth = runners.bandwidths.of_gpu(executor, cost.bytes, cold)
        return bandwidth, bandwidth.get("read")

    def _streams(
        self, runners: Runners, cost: Cost | None, cold: bool
    ) -> tuple[Streams | None, list[tuple[Any, Ready]]]:
        """Return a process that measures a host's memory, over the bytes of a call."""
        executor = self.libraries[0].executor
        if self.libraries[0].gpu or cost is None or executor is None:
            return None, []
        streams = runners.bandwidths.streams(cost.bytes, cold)
        ((runner, offers),) = runners.prepare(streams, [Library("memory", executor)])
        return streams, [(runner, ready) for ready in offers]


def _beside(contenders: Sequence[Slot], settings: Settings) -> dict[str, Timing]:
    """Return the times of contenders with busy processes, if requested."""
    if settings.busy == 0:
        return {}
    with busy(settings.busy):
        return interleave(
            contenders,
            batches=settings.batches,
            batch_seconds=settings.batch_seconds,
            budget=settings.budget,
            cold=settings.cold,
            lost={},
        )


def _facts(runner: Any, ready: Ready) -> OfferFacts:
    """Return a contender's final properties, or its earlier ones if it fails now."""
    try:
        facts: OfferFacts = runner.finish(ready.name)
    except Lost as reason:
        ready.facts.notes.append(f"failed after it was timed: {reason}")
        return ready.facts
    return facts


def runners_for(executor: Executor, *, own_process: bool | None = None) -> Runners:
    """Return where contenders of an executor are timed.

    On a CPU each has a process of its own. A GPU does one thing at a time and has no threads that
    spin, and every next contender flushes its caches, so that one process is enough.
    """
    threads = int(executor.properties.get("threads", 1))
    if own_process is None:
        own_process = executor.backend not in GPUS
    return Runners(own_process=own_process, threads=threads)


__all__ = ["BUDGET", "OURS", "Contest", "Offer", "Outcome", "Settings", "runners_for"]
