"""Timing several contenders in turn, so that other work of the machine affects all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .clocks import Clock, Wall

#: A batch lasts at least this long, in seconds: several time slices of a scheduler.
BATCH_SECONDS = 0.03

#: Batches per contender: enough for quartiles, few enough for a suite of cases.
BATCHES = 15

#: Fewer batches than this make no median worth printing, however long they take.
FEWEST_BATCHES = 3

#: A batch has at most this number of calls, and until it lasts long enough they are multiplied by
#: the second.
MOST_CALLS, CALIBRATION_STEP = 1 << 20, 16

#: With cold caches the flush before each call takes most of the time.
COLD_CALLS = 3


@dataclass(frozen=True)
class Pace:
    """How long the parts of a timing last, in seconds.

    Attributes
    ----------
    batch : float
        A batch has as many calls as last this long.
    warm_up : float
        Before a batch there are calls for this long, so that threads wake up and others' data leave
        the caches.
    long : float
        A call that takes this long needs no other before it to be warm.
    """

    batch: float
    warm_up: float
    long: float


#: By the clock of a host. On two cores of an EPYC the second call was as fast as all later ones.
HOST = Pace(BATCH_SECONDS, warm_up=0.01, long=0.25)

#: By the host's clock, while a GPU works: no scheduler has a say in it.
WAITED = Pace(batch=0.01, warm_up=1e-3, long=5e-3)

#: By the clock of the device, which knows nothing of the host and is read to half a microsecond.
DEVICE = Pace(batch=2e-3, warm_up=1e-3, long=5e-3)


def pace_of(method: str, gpu: bool) -> Pace:
    """Return the pace that fits a clock, by its name in records."""
    if method in ("events", "graph"):
        return DEVICE
    return WAITED if gpu else HOST


class Lost(Exception):
    """A contender that failed while it was timed; the message says how."""


class Timed(Protocol):
    """The methods of a contender that :func:`interleave` calls, in any process."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def pace(self) -> Pace:
        """How long to time it."""

    def batch(self, calls: int, *, warm: bool = True, cold: bool = False) -> float:
        """Return the seconds per call of ``calls`` calls.

        Raises
        ------
        Lost
            If it fails.
        """


@dataclass(frozen=True)
class Contender:
    """Something to time, in this process.

    Attributes
    ----------
    name : str
        Its name.
    call : callable
        Does the work once and returns its result.
    synchronize : callable
        Waits for the work, where ``call`` only submits it.
    to_host : callable
        Turns the result of ``call`` into a NumPy array.
    clock : Clock
        The clock of its times.
    flush : callable
        Empties the caches.
    pace : Pace
        How long to time it.
    """

    name: str
    call: Callable[[], Any]
    synchronize: Callable[[], None] = field(default=lambda: None)
    to_host: Callable[[Any], Any] = np.asarray
    clock: Clock = field(default_factory=Wall)
    flush: Callable[[], None] = field(default=lambda: None)
    pace: Pace = HOST

    def batch(self, calls: int, *, warm: bool = True, cold: bool = False) -> float:
        """Return the seconds per call of ``calls`` calls.

        Parameters
        ----------
        calls : int
            How many.
        warm : bool
            Make calls before it.
        cold : bool
            Empty the caches before each call.
        """
        try:
            if cold:
                return self._cold(calls)
            if warm:
                self._warm_up()
            return self.clock.batch(self.call, self.synchronize, calls)
        # every error of a peer belongs into the report: the other contenders go on
        except Exception as error:
            raise Lost(f"{type(error).__name__}: {error}") from error

    def _cold(self, calls: int) -> float:
        taken = 0.0
        for _ in range(calls):
            self.flush()
            self.synchronize()
            taken += self.clock.batch(self.call, self.synchronize, 1)
        return taken / calls

    def _warm_up(self) -> None:
        began = time.perf_counter()
        while True:
            self.call()
            self.synchronize()
            if time.perf_counter() - began > self.pace.warm_up:
                return


@dataclass(frozen=True)
class Timing:
    """Seconds per call, one sample a batch.

    Attributes
    ----------
    samples : tuple of float
        In the order of the rounds: sample ``i`` of all contenders was taken at about one time.
    calls : int
        Calls per batch.
    """

    samples: tuple[float, ...]
    calls: int

    @property
    def median(self) -> float:
        """The median in seconds."""
        return float(np.median(self.samples))

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile in seconds."""
        low, high = np.percentile(self.samples, (25, 75))
        return float(low), float(high)

    def ratio_of(self, other: Timing) -> float:
        """Return how many times as long ``other`` takes: the median over the rounds."""
        return float(np.median(np.array(other.samples) / np.array(self.samples)))


def interleave(
    contenders: Sequence[Timed],
    *,
    batches: int = BATCHES,
    batch_seconds: float = BATCH_SECONDS,
    budget: float | None = None,
    cold: bool = False,
    lost: dict[str, str] | None = None,
) -> dict[str, Timing]:
    """Time each contender in every round; the order turns from round to round.

    Parameters
    ----------
    contenders : sequence of Timed
        The contenders.
    batches : int
        Rounds.
    batch_seconds : float
        Each batch makes as many calls as last this long, or as the contender's pace says if that
        is shorter.
    budget : float, optional
        Rounds stop after this many seconds, but not before there are three.
    cold : bool
        Empty the caches before each call.
    lost : dict, optional
        Takes the names of contenders that failed on the way, and how; they have no timing.

    Returns
    -------
    dict of str to Timing
        By name.

    Raises
    ------
    Lost
        If a contender fails and ``lost`` is not given.

    Examples
    --------
    >>> from wollemi_bench import Contender, interleave
    >>> seen = interleave([Contender("nothing", lambda: None)], batches=3, batch_seconds=1e-4)
    >>> seen["nothing"].median < 1e-3
    True
    """
    calls, warm = {}, {}
    samples: dict[str, list[float]] = {}
    there = list(contenders)

    def turn_of(contender: Timed, work: Callable[[Timed], None]) -> None:
        try:
            work(contender)
        except Lost as reason:
            if lost is None:
                raise
            lost[contender.name] = str(reason)
            there.remove(contender)
            samples.pop(contender.name, None)

    def calibrate(contender: Timed) -> None:
        if cold:
            calls[contender.name], warm[contender.name] = COLD_CALLS, False
        else:
            wanted = min(batch_seconds, contender.pace.batch)
            calls[contender.name], seconds = _calibrate(contender, wanted)
            warm[contender.name] = seconds < contender.pace.long
        samples[contender.name] = []

    def measure(contender: Timed) -> None:
        name = contender.name
        samples[name].append(contender.batch(calls[name], warm=warm[name], cold=cold))

    for contender in contenders:
        turn_of(contender, calibrate)
    began = time.perf_counter()
    for round_ in range(max(batches, FEWEST_BATCHES)):
        turn = round_ % max(len(there), 1)
        for contender in (*there[turn:], *there[:turn]):
            turn_of(contender, measure)
        spent = time.perf_counter() - began
        if budget is not None and spent > budget and round_ + 1 >= FEWEST_BATCHES:
            break
    return {name: Timing(tuple(taken), calls[name]) for name, taken in samples.items()}


def _calibrate(contender: Timed, batch_seconds: float) -> tuple[int, float]:
    """Return how many calls last ``batch_seconds``, and how long one takes.

    Batches with ever more calls warm up for one another.
    """
    calls = 1
    while True:
        each = contender.batch(calls, warm=False)
        wanted = max(1, round(batch_seconds / max(each, 1e-9)))
        if calls * each >= batch_seconds / 2 or calls >= MOST_CALLS:
            return min(wanted, 2 * calls), each
        calls = min(wanted, CALIBRATION_STEP * calls, MOST_CALLS)
