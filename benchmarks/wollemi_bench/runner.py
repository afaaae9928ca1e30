"""Where contenders are made, checked and timed: here or, by ``worker.py``, in another process."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import Any

from .clocks import Told, clock_of
from .flush import flush
from .memory import Meter, NoMeter, PoolMeter
from .peers import Absent
from .problem import Library, Offer, OfferFacts, Problem
from .timing import Contender, Pace, pace_of


@dataclass(frozen=True)
class Ready:
    """The outcome of an offer.

    Attributes
    ----------
    name : str
        The contender's.
    trouble : str
        Empty, ``wrong: ...``, ``failed: ...`` or ``absent: ...``.
    facts : OfferFacts
        Its properties.
    """

    name: str
    trouble: str
    facts: OfferFacts


class Runner:
    """Makes contenders of one problem, checks them and times them."""

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._contenders: dict[str, tuple[Contender, Offer, OfferFacts]] = {}
        self._problem_bytes = 0

    def load(self, problem: Problem) -> None:
        """Take up a problem and forget the one before."""
        self.clear()
        self._problem = problem

    def prepare(self, library: Library) -> list[Ready]:
        """Make a library's offers, check them, and make them again to measure the set-up.

        The first time also pays for imports and compilers, which a user does not pay for a matrix.
        """
        assert self._problem is not None
        try:
            checked = {offer.name: self._checked(offer) for offer in self._problem.offers(library)}
        except Absent as error:
            return [Ready(library.name, f"absent: {error}", OfferFacts())]
        # every error of a library belongs into the report: the other contenders go on
        except Exception as error:
            return [Ready(library.name, _failed(error), OfferFacts())]
        if not all(ready.trouble for ready in checked.values()):
            self._take_all(library, checked)
        return list(checked.values())

    def _take_all(self, library: Library, checked: dict[str, Ready]) -> None:
        """Make the timed functions, and measure their time and memory."""
        assert self._problem is not None
        gc.collect()
        meter = self._meter(library)
        meter.reset()
        offers = self._problem.offers(library)
        placed = meter.peak()
        for offer in offers:
            ready = checked[offer.name]
            if ready.trouble:
                continue
            meter.reset()
            taken = checked[offer.name] = self._take(offer, ready.facts, library.gpu)
            own = meter.peak()
            if placed is not None and own is not None:
                taken.facts.peak_memory = self._problem_bytes + placed + own

    def _meter(self, library: Library) -> Meter:
        """Return a meter of the memory of a library; in a shared process there is none."""
        if library.peer is not None and library.gpu:
            return library.peer.meter()
        return PoolMeter() if library.gpu else NoMeter()

    def _checked(self, offer: Offer) -> Ready:
        """Call it once; a wrong or failing one is reported, not timed."""
        assert self._problem is not None
        try:
            result = offer.to_host((offer.check or offer.make)()())
            offer.synchronize()
            wrong = (offer.wrong or self._problem.wrong)(result)
            facts = offer.facts()
        except Absent as error:
            return Ready(offer.name, f"absent: {error}", OfferFacts())
        except Exception as error:
            return Ready(offer.name, _failed(error), OfferFacts())
        return Ready(offer.name, f"wrong: {wrong}" if wrong else "", facts)

    def _take(self, offer: Offer, facts: OfferFacts, gpu: bool) -> Ready:
        """Make the timed function."""
        offer.synchronize()
        began = time.perf_counter()
        try:
            call = offer.make()
            call()
            offer.synchronize()
        except Exception as error:
            return Ready(offer.name, _failed(error), facts)
        facts.first = time.perf_counter() - began
        on_gpu = gpu and not offer.host_clock
        clock = Told() if offer.told else clock_of(call, gpu=on_gpu, capture=offer.capture)
        facts.method = clock.method
        contender = Contender(
            offer.name,
            call,
            offer.synchronize,
            offer.to_host,
            clock,
            lambda: flush(gpu)(),
            pace_of(clock.method, gpu),
        )
        self._contenders[offer.name] = contender, offer, facts
        return Ready(offer.name, "", facts)

    def batch(self, name: str, calls: int, warm: bool, cold: bool) -> float:
        """Return the seconds per call of a batch; raises Lost if the contender fails."""
        contender, _, _ = self._contenders[name]
        return contender.batch(calls, warm=warm, cold=cold)

    def finish(self, name: str) -> OfferFacts:
        """Return the properties of a contender after it was timed."""
        contender, offer, facts = self._contenders[name]
        try:
            offer.finish(contender.to_host(contender.call()), facts)
        except Exception as error:
            facts.notes.append(_failed(error))
        return facts

    def clear(self) -> None:
        """Forget problem and contenders."""
        self._problem = None
        self._contenders.clear()
        collect()


def collect() -> None:
    """Free unused objects, and exclude the rest from further collections.

    The rest is mostly libraries: a tenth of a second for each collection, and PyTorch collects
    before each graph that it captures.
    """
    gc.collect()
    gc.freeze()


class Slot:
    """A contender at a runner, wherever the runner is."""

    def __init__(self, runner: Any, name: str, pace: Pace) -> None:
        self.runner, self.name, self.pace = runner, name, pace

    def batch(self, calls: int, *, warm: bool = True, cold: bool = False) -> float:
        """Return the seconds per call of ``calls`` calls; raises Lost if it fails."""
        return float(self.runner.batch(self.name, calls, warm, cold))


def _failed(error: Exception) -> str:
    return f"failed: {type(error).__name__}: {error}"
