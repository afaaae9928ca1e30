"""Timing several things in turn, so that what else the machine does hits all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: A batch lasts at least this long, in seconds: a thousand times the clock's resolution and more
#: than a scheduler's time slice.
BATCH_SECONDS = 0.01

#: A call that takes this long, in seconds, needs no other before it to be warm.
LONG = 0.1

#: Batches per contender: enough for quartiles, few enough for a suite of cases.
BATCHES = 15

#: Fewer batches than this make no median worth printing, however long they take.
FEWEST_BATCHES = 3


def _nothing() -> None:
    """Wait for nothing: the call is over when it returns."""


@dataclass(frozen=True)
class Contender:
    """Something to time.

    Attributes
    ----------
    name : str
        What to call it.
    call : callable
        Does the work once and returns its result.
    synchronize : callable
        Waits for the work, where ``call`` only submits it.
    to_host : callable
        Turns what ``call`` returns into a NumPy array.
    """

    name: str
    call: Callable[[], Any]
    synchronize: Callable[[], None] = _nothing
    to_host: Callable[[Any], Any] = np.asarray


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
    contenders: Sequence[Contender],
    *,
    batches: int = BATCHES,
    batch_seconds: float = BATCH_SECONDS,
    budget: float | None = None,
) -> dict[str, Timing]:
    """Time each contender in every round; the order turns from round to round.

    Parameters
    ----------
    contenders : sequence of Contender
        What to time.
    batches : int
        Rounds.
    batch_seconds : float
        Each batch makes as many calls as last this long.
    budget : float, optional
        Rounds stop after this many seconds, but not before there are three.

    Returns
    -------
    dict of str to Timing
        By name.

    Examples
    --------
    >>> from wollemi.bench import Contender, interleave
    >>> seen = interleave([Contender("nothing", lambda: None)], batches=3, batch_seconds=1e-4)
    >>> seen["nothing"].median < 1e-3
    True
    """
    calls, warm = {}, {}
    for contender in contenders:
        calls[contender.name], seconds = _calibrate(contender, batch_seconds)
        warm[contender.name] = seconds < LONG
    samples: dict[str, list[float]] = {c.name: [] for c in contenders}
    began = time.perf_counter()
    for round_ in range(max(batches, FEWEST_BATCHES)):
        turn = round_ % max(len(contenders), 1)
        for contender in (*contenders[turn:], *contenders[:turn]):
            name = contender.name
            samples[name].append(_batch(contender, calls[name], warm[name]))
        spent = time.perf_counter() - began
        if budget is not None and spent > budget and round_ + 1 >= FEWEST_BATCHES:
            break
    return {name: Timing(tuple(taken), calls[name]) for name, taken in samples.items()}


def _batch(contender: Contender, calls: int, warm: bool = True) -> float:
    """Return the seconds per call of one batch; a call before it warms caches and threads."""
    if warm:
        contender.call()
        contender.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        contender.call()
    contender.synchronize()
    return (time.perf_counter() - start) / calls


def _calibrate(contender: Contender, batch_seconds: float) -> tuple[int, float]:
    """Return how many calls last ``batch_seconds``, and how long one takes."""
    calls = 1
    while True:
        each = _batch(contender, calls, warm=calls > 1)
        if calls * each >= batch_seconds / 2 or calls >= 1 << 20:
            return max(1, round(calls * min(batch_seconds / max(calls * each, 1e-9), 2.0))), each
        calls *= 2
