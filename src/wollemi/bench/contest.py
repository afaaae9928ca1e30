"""A contest: check every contender, then time those that are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.executor import Executor
from ..core.operation import Cost
from .bandwidth import streams
from .timing import BATCH_SECONDS, BATCHES, Contender, Timing, interleave

#: Seconds that a contest may take after its warm-up.
BUDGET = 20.0


@dataclass(frozen=True)
class Outcome:
    """What became of one contender.

    Attributes
    ----------
    name : str
        The contender's.
    timing : Timing or None
        None if it was not timed; ``trouble`` says why.
    trouble : str
        Empty, ``wrong: ...``, ``failed: ...`` or ``absent: ...``.
    """

    name: str
    timing: Timing | None = None
    trouble: str = ""


@dataclass(frozen=True)
class Settings:
    """How long to measure."""

    batches: int = BATCHES
    batch_seconds: float = BATCH_SECONDS
    budget: float = BUDGET


@dataclass
class Contest:
    """Contenders that do one and the same thing, ours first.

    Attributes
    ----------
    check : callable
        Takes a contender's result as a NumPy array; returns what is wrong with it, or "".
    cost : Cost or None
        Bytes and flops of one call; with it the floor is measured too.
    """

    contenders: Sequence[Contender]
    check: Callable[[Any], str]
    cost: Cost | None = None
    absent: dict[str, str] = field(default_factory=dict)

    def run(self, executor: Executor, settings: Settings) -> tuple[list[Outcome], dict[str, float]]:
        """Check, time, and measure the memory in the same rounds.

        Returns
        -------
        list of Outcome
            One per contender in their order, then the absent ones.
        dict of str to float
            Bytes per second of ``read`` and ``triad``; empty without a cost.
        """
        troubles = {c.name: self._trouble(c) for c in self.contenders}
        sound = [c for c in self.contenders if not troubles[c.name]]
        memory = [] if self.cost is None else streams(executor, self.cost.bytes)
        times = interleave(
            [*sound, *(s.contender for s in memory)],
            batches=settings.batches,
            batch_seconds=settings.batch_seconds,
            budget=settings.budget,
        )
        outcomes = [Outcome(c.name, times.get(c.name), troubles[c.name]) for c in self.contenders]
        outcomes += [Outcome(name, None, f"absent: {why}") for name, why in self.absent.items()]
        bandwidth: dict[str, float] = {}
        for stream in memory:
            rate = stream.bytes / times[stream.contender.name].median
            bandwidth[stream.kind] = max(rate, bandwidth.get(stream.kind, 0.0))
        return outcomes, bandwidth

    def _trouble(self, contender: Contender) -> str:
        """Run a contender once; a wrong or failing one is reported, not timed."""
        try:
            result = contender.to_host(contender.call())
            contender.synchronize()
            wrong = self.check(result)
        # whatever a peer raises belongs into the report: the other contenders go on
        except Exception as error:
            return f"failed: {type(error).__name__}: {error}"
        return f"wrong: {wrong}" if wrong else ""
