"""A stopping criterion that ends an attempt when another candidate is expected to finish sooner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, log2
from typing import Any

import numpy as np

from ...core.stopping import Criterion, State

#: Give up an attempt without a promising residual after this fraction of the other candidate's
#: time: STOPPING_PART, or down to STOPPING_PART_OF_HOPELESS if the residual hardly falls.
STOPPING_PART, STOPPING_PART_OF_HOPELESS = 0.35, 0.12

#: The fraction stays at STOPPING_PART while the expected remaining time is at most this multiple of
#: the other candidate's time, and is inversely proportional to it beyond.
TIMES_OF_UNCERTAIN = 3.0

#: Time between two observations of the residual: SECONDS_BETWEEN seconds, or the fraction
#: PART_BETWEEN of the other candidate's time if that is less.
SECONDS_BETWEEN, PART_BETWEEN = 1.5e-3, 0.06

#: If the number of iterations is known, allow this multiple of it.
TIMES_OF_KNOWN = 1.25

#: Within the known iterations, continue while the remaining ones take at most this multiple of the
#: other candidate's time.
TIMES_OF_EXPECTED = 1.3

#: In the last fifth of the known iterations, continue only while the remaining time that the
#: residual predicts is at most this multiple of the other candidate's time.
TIMES_OF_SLOW = 2.5

#: Judge the residual after OBSERVATIONS observations (OBSERVATIONS_OF_SMALL for small systems) and
#: JUDGED_ITERATIONS iterations.
OBSERVATIONS, OBSERVATIONS_OF_SMALL, JUDGED_ITERATIONS = 4, 3, 10

#: Estimate the other candidates after FIRST_ITERATIONS iterations of the first candidate, or after
#: more iterations that take FIRST_SECONDS seconds in all, or the fraction FIRST_PART of another
#: candidate's time if that is less.
FIRST_ITERATIONS, FIRST_SECONDS, FIRST_PART = 30, 1.2e-3, 0.12

#: Continue without estimating the other candidates while the logarithm of the remaining reduction
#: is at most this multiple of the logarithm of the reduction so far.
RATIO_OF_NEAR = 0.5

#: Compare the observed with the estimated time per iteration after this many iterations: the first
#: ones include preparations.
TIMED_ITERATIONS = 20

#: Rounding errors of a residual larger than the threshold divided by EPS remain in later residuals:
#: no further iteration meets the tolerance (G. L. G. Sleijpen and H. A. van der Vorst, Reliable
#: updated residuals in hybrid Bi-CG methods, Computing 56, 1996).
EPS = float(np.finfo(np.float64).eps)

#: Only a residual of at least this multiple of the initial one counts as diverged: smaller ones may
#: fall again.
GROWTH_OF_DIVERGED = 1e6

#: Bounds of the number of iterations between two observations.
LEAST_INTERVAL, LARGEST_INTERVAL = 1, 256


@dataclass(frozen=True)
class Outlook:
    """Estimates of the other candidates.

    Attributes
    ----------
    alternative : float
        Estimated seconds of the cheapest other candidate.
    iterations : float
        Expected iterations of the running candidate, 0 if they are not known.
    better : bool
        Whether another candidate is clearly better.
    """

    alternative: float
    iterations: float
    better: bool


class Patience(Criterion):
    """Ends a solve if its remaining iterations take longer than another candidate in total.

    The set-up does not count: its time is spent. The remaining time assumes that the residual
    continues to fall at its rate over the second half of the iterations so far.

    Parameters
    ----------
    alternative : float
        Estimated seconds of the other candidate, including its set-up.
    per_iteration : float
        Estimated seconds of an iteration. The ratio of the observed to the estimated time scales
        ``alternative``.
    rtol, atol : float
        The tolerance of the residual.
    iterations : float
        The expected number of iterations if it is known, else 0. The residual is not judged before
        it is reached.
    outlook : callable, optional
        Estimates the other candidates from the expected remaining seconds and the iterations so
        far. It is called after :data:`FIRST` iterations or more, by which easy systems are solved.
        If it returns None, the solve continues, and the next call follows after as many iterations
        again.
    quickest : float
        Lower bound of another candidate's seconds: if it is small, observations are more frequent.
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
        #: Estimates of the first candidate are reliable, and its residuals are erratic over few
        #: iterations.
        self._is_first = outlook is not None
        #: Observed time of an iteration divided by the estimated one, rounded down to a power of
        #: two.
        self._slower = 1.0
        look = FIRST_PART * quickest
        self._looks = OBSERVATIONS_OF_SMALL if np.isfinite(quickest) else OBSERVATIONS
        self.every = self._period(min(alternative, quickest))
        if outlook is not None:
            first = min(FIRST_SECONDS, look) / max(per_iteration, 1e-9)
            self._usual, self.every = self.every, _within(first, FIRST_ITERATIONS)
        #: Whether this criterion ended the solve.
        self.gave_up = False
        #: Whether the residual grew so much that no further iteration can meet the tolerance.
        self.diverged = False
        #: The last estimate of the remaining seconds.
        self.rest = np.inf
        #: Observed time of an iteration divided by the estimated one.
        self.scale = 1.0
        self._seconds: list[float] = []
        self._missing: list[float] = []

    def done(self, state: State) -> bool:
        """Return whether another candidate is expected to finish sooner, or the solve diverged."""
        threshold = np.maximum(np.maximum(self.rtol * state.norm_b, self.atol), 1e-300)
        with np.errstate(all="ignore"):
            least = np.maximum(threshold / EPS, GROWTH_OF_DIVERGED * state.initial_norm)
            self.diverged = bool(np.any(state.norm > least))
        if self.diverged:
            return True
        if not self._seconds:
            self._look(0.0, state.initial_norm / threshold)
        self._look(state.seconds, state.norm / threshold)
        self._observe_speed(state)
        self.rest = self._expected_rest()
        if self._outlook is not None:
            if self._missing[-1] <= RATIO_OF_NEAR * (self._missing[0] - self._missing[-1]):
                return False
            outlook = self._outlook(self.rest, state.iteration)
            if outlook is None:
                self.every = max(state.iteration, FIRST_ITERATIONS)
                return False
            self._outlook, self.every = None, self._usual
            self.alternative, self.iterations = outlook.alternative, outlook.iterations
            nearly = self.rest <= outlook.alternative
            self.gave_up = outlook.better and not nearly
            if self.gave_up or not np.isfinite(self.alternative):
                return self.gave_up
        if not self._is_first:
            self.every = self._period(self.alternative)
        alternative, spent = self.alternative * self.scale, state.seconds
        if state.iteration < TIMES_OF_KNOWN * self.iterations:
            seconds = self.per_iteration * self.scale
            rest = (TIMES_OF_KNOWN * self.iterations - state.iteration) * seconds
            early = state.iteration < 0.8 * self.iterations
            if rest <= TIMES_OF_EXPECTED * alternative and (
                early or self.rest <= TIMES_OF_SLOW * alternative
            ):
                return False
        if len(self._seconds) < self._looks or state.iteration < JUDGED_ITERATIONS:
            return False
        if self.rest <= max(alternative - 0.3 * spent, 0.5 * alternative):
            return False
        part = min(
            max(
                STOPPING_PART * TIMES_OF_UNCERTAIN * alternative / self.rest,
                STOPPING_PART_OF_HOPELESS,
            ),
            STOPPING_PART,
        )
        self.gave_up = bool(spent > alternative * part)
        return self.gave_up

    def _observe_speed(self, state: State) -> None:
        if not self.per_iteration > 0:
            return
        times = state.seconds / max(state.iteration, 1) / self.per_iteration
        if state.iteration >= JUDGED_ITERATIONS and not self._is_first:
            self._slower = 2.0 ** int(log2(max(times, 1.0)))
        if state.iteration >= TIMED_ITERATIONS:
            self.scale = min(max(times, 0.5), 2.0)

    def _period(self, alternative: float) -> int:
        """Return the iterations between two observations, at the observed speed if it is known."""
        seconds = min(SECONDS_BETWEEN, PART_BETWEEN * alternative)
        return _within(seconds / max(self.per_iteration * self._slower, 1e-9), LEAST_INTERVAL)

    def _look(self, seconds: float, ratio: np.ndarray[Any, Any]) -> None:
        """Record the smallest remaining reduction so far, since some residuals are erratic."""
        missing = log(float(np.fmax.reduce(ratio, axis=None, initial=1.0)))
        self._seconds.append(seconds)
        self._missing.append(min([missing, *self._missing[-1:]]))

    def _expected_rest(self) -> float:
        looks = len(self._seconds)
        half = 0 if looks == 2 else looks // 2
        if half == looks - 1:
            return np.inf
        gained = self._missing[half] - self._missing[-1]
        seconds = self._seconds[-1] - self._seconds[half]
        return np.inf if gained <= 0 else max(self._missing[-1], 0.0) * seconds / gained


def _within(count: float, least: int) -> int:
    """Limit a number of iterations between two observations to its bounds."""
    return int(min(max(count, least), LARGEST_INTERVAL))
