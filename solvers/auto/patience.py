"""A criterion that ends an attempt where another candidate is expected to be done sooner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, log2
from typing import Any

import numpy as np

from ...core.stopping import Criterion, State

#: The part of the time of the other candidate that an attempt has without a promising residual,
#: and with a residual that hardly falls.
PART, HOPELESS_PART = 0.35, 0.12

#: How many times the time of the other candidate the rest may take for the whole of that part: it
#: shrinks as the rest grows.
UNCERTAIN = 3.0

#: Seconds between two looks at the residual, and the part of the time of another candidate where
#: that is less.
BETWEEN, BETWEEN_PART = 1.5e-3, 0.06

#: How many times the expected iterations an attempt has where their number is known.
LONGER = 1.25

#: How many times the time of the other candidate the rest of these iterations may take.
EXPECTED = 1.3

#: How many times that time the residual must promise in the last fifth of them.
SLOW = 2.5

#: Looks at the residual before it is judged, for small systems, and iterations.
LOOKS, LOOKS_OF_SMALL, JUDGED = 4, 3, 10

#: Iterations before the other candidates are found, and seconds that are expected of these; the
#: part of the time of another candidate where that is less.
FIRST, FIRST_SECONDS, FIRST_PART = 30, 1.2e-3, 0.12

#: How many times the logarithm of the reduction so far may be missing for a solve that goes on
#: without a look at the other candidates.
NEAR = 0.5

#: Iterations that are timed: the first ones include preparations.
TIMED = 20

#: Roundings of a residual that is larger than the threshold divided by this stay in later ones: no
#: iteration of the same solve meets the tolerance (G. L. G. Sleijpen and H. A. van der Vorst,
#: Reliable updated residuals in hybrid Bi-CG methods, Computing 56, 1996).
EPS = float(np.finfo(np.float64).eps)

#: How many times the first residual such a residual is at least: others fall again.
GROWN = 1e6

#: The fewest and the most iterations between two looks.
FEWEST, MOST = 1, 256


@dataclass(frozen=True)
class Outlook:
    """The other candidates.

    Attributes
    ----------
    alternative : float
        Estimated seconds of the cheapest other candidate.
    iterations : float
        Expected iterations of this one, 0 where they are not known.
    better : bool
        Whether the other one is clearly better.
    """

    alternative: float
    iterations: float
    better: bool


class Patience(Criterion):
    """Ends a solve if the rest is expected to take longer than another candidate in all.

    The set-up does not count: it is over. The rest is that of a residual that goes on falling as it
    did in the second half of the iterations so far.

    Parameters
    ----------
    alternative : float
        Estimated seconds of the other candidate, from its set-up to its solution.
    per_iteration : float
        Estimated seconds of an iteration: observed seconds scale ``alternative``.
    rtol, atol : float
        The tolerance of the residual.
    iterations : float
        The expected number of iterations where that is known, 0 elsewhere: the residual is not
        judged before.
    outlook : callable, optional
        Finds the other candidates after :data:`FIRST` iterations or more, by which easy systems are
        solved, for the expected seconds of the rest and the iterations so far. None lets the solve
        go on; it is asked again after that number of iterations.
    quickest : float
        Seconds that another candidate takes at least: looks are more frequent if these are few.
    """

    def __init__(
        self,
        alternative: float,
        per_iteration: float,
        rtol: float,
        atol: float,
        iterations: float = 0.0,
        outlook: Callable[[float, int], Outlook | None] | None = None,
        quickest: float = np.inf,
    ) -> None:
        self.alternative, self.per_iteration = alternative, per_iteration
        self.iterations, self._outlook = iterations, outlook
        self.rtol, self.atol = rtol, atol
        #: Estimates of the first candidate are good, and its residuals erratic between near looks.
        self._is_first = outlook is not None
        #: The observed time of an iteration over the estimated one, as a power of two.
        self._slower = 1.0
        look = FIRST_PART * quickest
        self._looks = LOOKS_OF_SMALL if np.isfinite(quickest) else LOOKS
        self.every = self._period(min(alternative, quickest))
        if outlook is not None:
            first = min(FIRST_SECONDS, look) / max(per_iteration, 1e-9)
            self._usual, self.every = self.every, _within(first, FIRST)
        #: Whether this criterion ended the solve.
        self.gave_up = False
        #: Whether the residual grew so far that no later one can meet the tolerance.
        self.diverged = False
        #: The expected seconds of the rest when it was last asked.
        self.rest = np.inf
        #: The observed time of an iteration over the estimated one.
        self.scale = 1.0
        self._seconds: list[float] = []
        self._missing: list[float] = []

    def done(self, state: State) -> bool:
        """Return whether another candidate is expected to be done sooner."""
        threshold = np.maximum(np.maximum(self.rtol * state.norm_b, self.atol), 1e-300)
        with np.errstate(all="ignore"):
            least = np.maximum(threshold / EPS, GROWN * state.initial_norm)
            self.diverged = bool(np.any(state.norm > least))
        if self.diverged:
            return True
        if not self._seconds:
            self._look(0.0, state.initial_norm / threshold)
        self._look(state.seconds, state.norm / threshold)
        self._observe_speed(state)
        self.rest = self._expected_rest()
        if self._outlook is not None:
            if self._missing[-1] <= NEAR * (self._missing[0] - self._missing[-1]):
                return False
            found = self._outlook(self.rest, state.iteration)
            if found is None:
                self.every = max(state.iteration, FIRST)
                return False
            self._outlook, self.every = None, self._usual
            self.alternative, self.iterations = found.alternative, found.iterations
            nearly = self.rest <= found.alternative
            self.gave_up = found.better and not nearly
            if self.gave_up or not np.isfinite(self.alternative):
                return self.gave_up
        if not self._is_first:
            self.every = self._period(self.alternative)
        alternative, spent = self.alternative * self.scale, state.seconds
        if state.iteration < LONGER * self.iterations:
            seconds = self.per_iteration * self.scale
            rest = (LONGER * self.iterations - state.iteration) * seconds
            early = state.iteration < 0.8 * self.iterations
            if rest <= EXPECTED * alternative and (early or self.rest <= SLOW * alternative):
                return False
        if len(self._seconds) < self._looks or state.iteration < JUDGED:
            return False
        if self.rest <= max(alternative - 0.3 * spent, 0.5 * alternative):
            return False
        part = min(max(PART * UNCERTAIN * alternative / self.rest, HOPELESS_PART), PART)
        self.gave_up = bool(spent > alternative * part)
        return self.gave_up

    def _observe_speed(self, state: State) -> None:
        if not self.per_iteration > 0:
            return
        times = state.seconds / max(state.iteration, 1) / self.per_iteration
        if state.iteration >= JUDGED and not self._is_first:
            self._slower = 2.0 ** int(log2(max(times, 1.0)))
        if state.iteration >= TIMED:
            self.scale = min(max(times, 0.5), 2.0)

    def _period(self, alternative: float) -> int:
        """Return the iterations between two looks, at the observed speed where it is known."""
        seconds = min(BETWEEN, BETWEEN_PART * alternative)
        return _within(seconds / max(self.per_iteration * self._slower, 1e-9), FEWEST)

    def _look(self, seconds: float, ratio: np.ndarray[Any, Any]) -> None:
        """Record the missing reduction: the best so far, since some residuals are erratic."""
        missing = log(float(np.fmax.reduce(ratio, axis=None, initial=1.0)))
        self._seconds.append(seconds)
        self._missing.append(min([missing, *self._missing[-1:]]))

    def _expected_rest(self) -> float:
        looks = len(self._seconds)
        half = 0 if looks == 2 else looks // 2
        if half == looks - 1:
            return np.inf
        gained = self._missing[half] - self._missing[-1]
        took = self._seconds[-1] - self._seconds[half]
        return np.inf if gained <= 0 else max(self._missing[-1], 0.0) * took / gained


def _within(count: float, least: int) -> int:
    """Return a number of iterations between two looks."""
    return int(min(max(count, least), MOST))
