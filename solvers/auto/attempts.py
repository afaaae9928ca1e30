"""Attempts to solve one system by several methods: their time limits, and the final result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, cast

import numpy as np

from ...core.errors import (
    InvalidArgument,
    InvalidMatrix,
    OutOfDeviceMemory,
    SolveInterrupted,
    SystemNotSolved,
    UnsupportedOperation,
)
from ...core.formats import Matrix
from ...core.linop import LinOp
from ...core.notes import Note, Topic, is_about, without
from ...core.operands import as_block
from ...core.operations import vector
from ...core.result import AttemptRecord, Result, changed
from ...core.small_values import as_dtype
from ...core.status import Stop
from ...core.stopping import AbsoluteResidual, Criterion, Iterations, RelativeResidual, Time
from ...core.vector_conversions import vector_converter
from ...core.wording import counted
from ..driver.loop import UNLIMITED
from ..driver.scaling import norms
from ..krylov.base import KrylovSolver
from ..registry import SOLVERS
from .accuracy import LARGE_ERROR, about_constants, about_error, rounding_of
from .candidates import DIRECT, Candidate, CandidateKey
from .estimating import EstimatingCg
from .kept import borrowed_solver, kept_direct
from .least_squares import shortest
from .merging import merged, take
from .patience import TIMES_OF_KNOWN, Outlook, Patience
from .pool import Pool
from .singular import why_singular
from .stop_limits import limits_of

#: Iteration limit of a first attempt. Of 50 square systems of public collections (rtol 1e-8), the
#: faster of BiCGSTAB and GMRES needed more iterations on five.
SHORT = 1000

#: Stops after which no other method is tried.
_FINAL = frozenset(
    {Stop.TIME_LIMIT, Stop.INTERRUPTED, Stop.CALLBACK, Stop.CRITERION, Stop.ITERATIONS}
)

#: Stops after which another method is tried even if the tolerance is zero.
_BROKEN = frozenset({Stop.INDEFINITE, Stop.BREAKDOWN, Stop.NOT_FINITE, Stop.DIVERGED})

#: Stops after which, as at an iteration limit, the residuals of an attempt serve to predict the
#: iterations of similar methods.
_FAILED = _BROKEN - {Stop.INDEFINITE}

#: Time limits of retried candidates, one for each round, as multiples of the cheapest other
#: candidate's time. None: no such limit in the last round.
PATIENCE_OF_ROUNDS: tuple[float | None, ...] = (4.0, 16.0, None)

#: Accept a least squares solution if its residual norm is at most this multiple of the smallest one
#: so far. With tiny singular values, a huge ``x`` can reduce the residual a little further.
LEAST_SQUARES_RATIO = 10.0

#: Estimate the iterations that an attempt needs from its residuals after LEARNED_AFTER iterations.
#: MOST_SLOWNESS is the upper bound of the ratio of this estimate to the expected iterations.
LEARNED_AFTER, MOST_SLOWNESS = 20, 20.0

#: Upper bound of the estimated iterations of a solve, as a multiple of the iterations so far. It
#: applies when the residual stagnates.
PLATEAU = 20.0

#: Continue the first attempt while its estimated remaining time is at most EARLY_REST times the
#: time of the cheapest other candidate. The factor exceeds 1 because residuals usually fall faster
#: later. If the number of iterations is not known, analyze the structure of the pattern in any case
#: when that takes less than the fraction CHEAP_STRUCTURE of the remaining time.
EARLY_REST, CHEAP_STRUCTURE = 1.5, 0.05

#: The residual of accurate factors has reached the limit of the precision if its norm is at most
#: ROUNDING_RATIO times the rounding error of ``|A| |x|``, and the threshold is at most
#: BELOW_RESIDUAL times that norm.
ROUNDING_RATIO, BELOW_RESIDUAL = 4.0, 0.7

#: Treat the matrix as singular if the estimated error of a direct solution exceeds SINGULAR_ERROR.
#: Accept the least squares solution as the shortest one if its norm is at most LENGTH_RATIO times
#: that of the first solution.
SINGULAR_ERROR, LENGTH_RATIO = 0.1, 1.001

#: Time limit in seconds of the search for the shortest solution: SHORTEST_FACTOR times the time of
#: all attempts so far, but at least SHORTEST_SECONDS.
SHORTEST_FACTOR, SHORTEST_SECONDS = 4.0, 1.0

#: Estimated time of a search for components, as a multiple of the time of the structural analysis.
COMPONENTS_FACTOR = 8.0

#: Errors that say that an optional preconditioner cannot be built for a matrix.
_UNSUITED = (InvalidMatrix, InvalidArgument, OutOfDeviceMemory, UnsupportedOperation)


#: Prefix of the notes on the first choice, when it was not the only candidate tried.
FIRST_CHOICE = "first choice"

#: Notes on the length of a solution of a singular system.
SHORTEST = Note("x is the shortest solution", Topic.SHORTEST)
LEAST = Note("x is the shortest least squares solution", Topic.SHORTEST)
LONGER_ONE = (
    "x is one of many solutions and perhaps not the shortest; method='lsmr', M='none' finds the "
    "shortest"
)


class Waiting(NamedTuple):
    """A candidate that gave up, and the estimated seconds that its remaining iterations take."""

    seconds: float
    candidate: Candidate


@dataclass
class Attempts:
    """The attempts to solve one system, all from ``x0``, and the best result so far."""

    A: LinOp
    b: Any
    x0: Any
    rtol: float
    atol: float
    maxiter: int | None
    stop: Criterion | None
    notes: list[str]
    watching: dict[str, Any]
    #: Time limit in seconds of all attempts together.
    seconds_left: float | None = None
    #: Creates the pool of candidates, on first use: the first candidates may solve the system.
    make_pool: Callable[[], Pool | None] | None = None
    #: Whether ``wl.solve`` chooses the method. It then also chooses one of many solutions.
    is_open: bool = False
    #: Solves the components of the matrix separately. Its argument says whether the first method
    #: was slow.
    separately: Callable[[bool], Result | None] | None = None
    #: Seconds that were already spent on building the preconditioner of the first attempt.
    made_in: float = 0.0
    #: Whether the first attempt is the candidate that solved the last system, and not the first
    #: choice.
    is_remembered: bool = False

    best: Result | None = None
    began: float = field(default_factory=time.perf_counter)
    #: Iteration limit that each candidate reached, by key; None if it ended for another reason.
    done: dict[CandidateKey, int | None] = field(default_factory=dict)
    #: Records of the attempts, in order.
    tried: list[AttemptRecord] = field(default_factory=list)
    #: Candidates that gave up and may be retried.
    waiting: list[Waiting] = field(default_factory=list)
    #: The candidate that solved the system.
    winner: Candidate | None = None
    #: Observed time of an iteration divided by the estimated one.
    scale: float = 1.0
    #: Keys of candidates that found the matrix singular or unsuitable.
    singular: set[CandidateKey] = field(default_factory=set)
    #: Whether least squares were tried.
    by_least_squares: bool = False
    #: Whether CG found a direction of nonpositive curvature.
    indefinite: bool = False
    #: The stop after which no further attempt is made.
    ended_by: Stop | None = None
    #: Multiplier of the time limits of :class:`Patience`; None disables these limits.
    _patience_factor: float | None = 1.0
    _patience: Patience | None = None
    _setup: float = 0.0

    def __post_init__(self) -> None:
        self.began -= self.made_in

    @cached_property
    def pool(self) -> Pool | None:
        """The candidates that are tried in the order of their expected time, if there are any."""
        return None if self.make_pool is None else self.make_pool()

    def run(self, first: Iterable[Candidate], tail: Callable[[], Iterable[Candidate]]) -> Result:
        """Try candidates until one succeeds: the given ones, the pool, then the tail."""
        for candidate in first:
            self._take_turn(candidate)
        while not self._is_settled() and self.pool is not None:
            if self.tried and not self._is_next_quick() and self._is_solved_separately():
                break
            following = self.pool.take(
                indefinite=self.indefinite, over=self._over(), spent=self._spent()
            )
            if following is None:
                break
            if not self.tried:
                self.notes += self.pool.about(following)
            if self._gave_up and not self._is_over(following):
                given_up = self.tried[-1]
                after = counted(given_up.iterations, "iteration")
                self.notes.append(f"{following.name} was expected to be quicker after {after}")
            self._take_turn(following)
        if not self._is_settled():
            self._is_solved_separately(last=True)
        self._take_up_again()
        for candidate in [] if self._is_settled() else tail():
            self._take_turn(candidate)
        if self.best is None:
            raise SystemNotSolved("no candidate could be tried: " + "; ".join(self.notes))
        if not self.best.converged and len(self.done) > 1:
            M = f" with {self.best.M}" if self.best.M else ""
            self.notes.append(f"the best is that of {self.best.solver.lower()}{M}")
        return self._with_all_notes(self.best)

    def _is_next_quick(self) -> bool:
        """Return whether the next candidate should be faster than a search for components."""
        pool = self.pool
        if pool is None or not pool.ready:
            return pool is not None and (pool.has_quick_probe or pool.has_early_multigrid)
        return self._alternative() < COMPONENTS_FACTOR * pool.seconds_of_structure

    def _is_solved_separately(self, *, last: bool = False) -> bool:
        """Solve the components separately; return whether that settled the system.

        If the first method was slow and one component has nearly all rows, the method would be as
        slow for that component. It then waits until the other candidates have failed.
        """
        separately, slow = self.separately, not last and (self._gave_up or self._diverged)
        self.separately = separately if slow else None
        result = None if separately is None else separately(slow)
        if result is None:
            return False
        self.tried += result.attempts
        self.notes += [note for note in result.notes if note not in self.notes]
        self.best = result if self.best is None else self._better(result)
        ended = {stop for stop in result.stops if stop != Stop.CONVERGED}
        if ended == {Stop.LEAST_SQUARES}:
            self.best, self.ended_by = result, Stop.LEAST_SQUARES
        return self._is_settled()

    def _try_least_squares(self) -> None:
        """Minimize the residual of an apparently singular matrix; a large one ends attempts."""
        self.by_least_squares = True
        if not isinstance(self.A, Matrix) or self.A.partition is not None:
            return
        result = self._shortest(None)
        how = "orthogonal factors" if result.notes else "lsmr"  # only orthogonal factors leave one
        self.best = result if self.best is None else self._better(result)
        ended = [s for s in result.stops if s != Stop.CONVERGED]
        if ended and all(s == Stop.LEAST_SQUARES for s in ended) and self._is_least(result):
            self.best, self.ended_by = result, Stop.LEAST_SQUARES
            self.notes.append(Note(f"{LEAST}, by {how}", Topic.SHORTEST))
        elif not ended and self.best is result:
            self.notes.append(SHORTEST)

    def _shortest(self, seconds: float | None) -> Result:
        """Return a least squares solution; it is the shortest one if ``x0`` is None."""
        assert isinstance(self.A, Matrix)
        began = time.perf_counter()
        result = shortest(self.A, self.b, self.x0, self.rtol, self.atol, seconds)
        setup = time.perf_counter() - began - result.seconds
        self._record(Candidate("lsmr"), setup, result.iterations, result.seconds, ending_of(result))
        result = changed(result, M="")
        self.notes += [note for note in result.notes if note not in self.notes]
        return result

    def _sign_of_singular(self, candidate: Candidate, result: Result) -> str | None:
        """Return why the matrix of a solved system is singular, None if there is no sign of it.

        Results of CG and MINRES without a preconditioner are not checked: their iterates lie in the
        range of a Hermitian matrix, so that they find the shortest solution.
        """
        if not (self.is_open and isinstance(self.A, Matrix)) or self.A.partition is not None:
            return None
        if candidate.method == DIRECT:
            large = result.error is not None and result.error > SINGULAR_ERROR
            return "A is singular to working precision" if large else None
        if candidate.method in ("cg", "minres") and candidate.M is None:
            return None
        sign = why_singular(self.A)
        return sign and f"{sign}: it is singular"

    def _shorten(self, candidate: Candidate, result: Result) -> None:
        """Replace a solution of a singular system by the shortest one, or add a note."""
        why = self._sign_of_singular(candidate, result)
        if why is None:
            return
        limits = (self.x0, self.maxiter, self.stop)
        seconds = max(SHORTEST_FACTOR * self._spent(), SHORTEST_SECONDS)
        if self.seconds_left is not None:
            seconds = min(seconds, self.seconds_left - self._spent())
        tried = seconds > 0 and all(limit is None for limit in limits)
        shorter = self._shortest(seconds) if tried else result
        if shorter is result or not shorter.converged:
            self.notes.append(Note(f"{why}. {LONGER_ONE}", Topic.LONGER))
            return
        lengths = [norms(self.A.executor, self._block(r.x)) for r in (result, shorter)]
        if np.all(lengths[1] <= LENGTH_RATIO * lengths[0]):
            self.best = shorter
            other_notes = without(self.notes, Topic.ERROR)  # of a longer solution
            self.notes = [*other_notes, Note(f"{why}. {SHORTEST}", Topic.SHORTEST)]

    def _block(self, x: Any) -> Any:
        return as_block(self.A.executor, x, self.A.shape[1], "x")

    def _is_least(self, result: Result) -> bool:
        """Return whether no attempt has reached a much smaller residual."""
        assert self.best is not None
        norms = [np.atleast_1d(r.residual_norm) for r in (result, self.best)]
        return bool(np.all(norms[0] <= LEAST_SQUARES_RATIO * norms[1]))

    def _over(self) -> set[CandidateKey]:
        return {key for key, allowed in self.done.items() if allowed is None}

    def _take_turn(self, candidate: Candidate) -> None:
        if self._is_settled() or self._is_over(candidate):
            return
        result = self._try(candidate)
        if result is not None and candidate.method == DIRECT and self._is_at_precision(result):
            return
        if self._looks_singular(candidate, result):
            self._try_least_squares()
        self._end_if_proved_least(result)
        if result is None:
            return
        if result.converged and self.winner is None:
            self.winner = candidate
            self._shorten(candidate, result)
        if self._is_promising(candidate, result):
            self._end_if_proved_least(self._try(replace(candidate, limit=None, patient=False)))
        elif not candidate.repeated:
            self.done[candidate.key] = None

    def _is_at_precision(self, result: Result) -> bool:
        """End the attempts if the residual of accurate factors is at the limit of the precision."""
        if result.converged or result.error is None or not result.error <= LARGE_ERROR:
            return False
        limit = rounding_of(self.A, result.x)
        norm, threshold = (np.atleast_1d(v) for v in (result.residual_norm, result.threshold))
        unmet = np.array([stop != Stop.CONVERGED for stop in result.stops])
        if np.any((norm > ROUNDING_RATIO * limit)[unmet]) or np.any(
            (threshold > BELOW_RESIDUAL * norm)[unmet]
        ):
            return False
        self.ended_by = Stop.STAGNATED
        size = norms(self.A.executor, as_block(self.A.executor, self.b, self.A.shape[0], "b"))
        reached = float(np.max(norm[unmet] / size[unmet]))
        self.notes.append(
            f"the residual is at the limit of {result.x.dtype}: no method leaves much less than "
            f"{reached:.1g} of b; loosen rtol to that, or use a wider dtype"
        )
        return True

    def _looks_singular(self, candidate: Candidate, result: Result | None) -> bool:
        """Return whether an attempt is the first to suggest that the matrix is singular."""
        if self.by_least_squares or self.ended_by is not None:
            return False
        if result is None:
            return candidate.method == DIRECT and candidate.key in self.singular
        return not result.converged and (
            candidate.method == DIRECT or Stop.LEAST_SQUARES in result.stops
        )

    def _end_if_proved_least(self, result: Result | None) -> None:
        """End the attempts at a least squares solution if the matrix is proved singular."""
        result = self.best if result is None else result
        proved = any(key[0] == DIRECT for key in self.singular)
        if result is None or self.ended_by is not None or not proved:
            return
        ended = {stop for stop in result.stops if stop != Stop.CONVERGED}
        if ended == {Stop.LEAST_SQUARES} and self._is_least(result):
            self.best, self.ended_by = result, Stop.LEAST_SQUARES

    def _take_up_again(self) -> None:
        """Retry candidates that gave up, after the others failed; the most promising one first.

        Their time limits grow from round to round.
        """
        if not self.waiting:
            return
        for times in PATIENCE_OF_ROUNDS:
            # if a factorization failed, the system is too ill-conditioned for long retries
            factorized = any(tried.method == DIRECT for tried in self.tried)
            if self._is_settled() or not self.waiting or factorized:
                return
            waiting, self.waiting = sorted(self.waiting, key=attrgetter("seconds")), []
            for seconds, candidate in waiting:
                if not np.isfinite(seconds) and times is None:
                    continue  # it made no progress: the tail tries it
                self._patience_factor = times
                self._take_turn(candidate)
        self._patience_factor = 1.0

    def _spent(self) -> float:
        return time.perf_counter() - self.began

    def _with_all_notes(self, result: Result) -> Result:
        """Return a result with the notes on all attempts."""
        stops = result.stops
        if self.ended_by is not None:
            stops = [s if s == Stop.CONVERGED else self.ended_by for s in stops]
        seconds = time.perf_counter() - self.began
        return changed(
            result,
            stops=stops,
            notes=self._all_notes(),
            seconds=seconds,
            attempts=list(self.tried),
            setup_before=0.0,
        )

    def _all_notes(self) -> list[str]:
        """Return the notes; mark notes on the first choice if several candidates were tried."""
        tried = {(attempt.method, attempt.M) for attempt in self.tried}
        about_first = [note for note in self.notes if is_about(note, Topic.FIRST_CHOICE)]
        if about_first and (len(tried) > 1 or self.is_remembered):
            others = without(self.notes, Topic.FIRST_CHOICE)
            place = self.notes.index(about_first[0])
            first = f"{FIRST_CHOICE}: {'; '.join(about_first)}"
            return [*others[:place], first, *others[place:]]
        return self.notes

    @property
    def budget(self) -> int:
        """The largest number of iterations of one attempt."""
        limits = [] if self.maxiter is None else [int(self.maxiter)]
        if self.stop is not None:
            limits += [int(count) for count in limits_of(self.stop, Iterations, "count")]
            if not limits and limits_of(self.stop, Time, "seconds"):
                return UNLIMITED
        return min(limits, default=10 * max(self.A.shape[0], 1))

    def _is_settled(self) -> bool:
        """Return whether no further attempt can change the result."""
        if self.best is None:
            return False
        if self.ended_by is not None or self.best.converged or self.maxiter == 0:
            return True
        failed = [stop for stop in self.best.stops if stop != Stop.CONVERGED]
        aimless = not np.any(np.asarray(self.best.threshold) > 0)
        return aimless and not any(stop in _BROKEN for stop in failed)

    def _is_over(self, attempt: Candidate) -> bool:
        """Return whether an attempt with this candidate cannot change the result."""
        if self._is_settled() or (attempt.needs_definite and self.indefinite):
            return True
        if attempt.key not in self.done:
            return False
        allowed = self.done[attempt.key]
        return allowed is None or allowed >= self._allowed(attempt)

    def _allowed(self, attempt: Candidate) -> int:
        whole = self.budget
        return whole if attempt.limit is None else min(attempt.limit, whole)

    def _is_promising(self, attempt: Candidate, result: Result) -> bool:
        """Return whether the remaining iterations suffice at the current rate of convergence."""
        if result.converged:
            return False
        used = self._allowed(attempt)
        if (
            not attempt.extended
            or attempt.patient
            or used >= self.budget
            or self._is_over(replace(attempt, limit=None))
        ):
            return False
        if not all(s in (Stop.CONVERGED, Stop.MAX_ITERATIONS) for s in result.stops):
            return False
        history = result.residuals.reshape(result.residuals.shape[0], -1)
        half = history.shape[0] // 2
        before, after = (_logarithm_of_least(h) for h in (history[:half], history[half:]))
        with np.errstate(all="ignore"):
            missing = np.log(np.atleast_1d(result.threshold)) - after
            gained = (after - before) / (history.shape[0] - half) * (self.budget - used)
            needed = np.nanmax(missing / ((after - before) / (history.shape[0] - half)), initial=0)
        open_columns = [s != Stop.CONVERGED for s in result.stops]
        if not (half and np.all((gained <= missing)[open_columns])):
            return False
        # another candidate, such as a factorization, may finish sooner
        rest = float(needed + used) * attempt.per_iteration * self.scale
        return rest <= self._alternative()

    def _learn(self, attempt: Candidate, result: Result) -> None:
        """Correct the expected iterations of similar methods by the ones of this attempt."""
        if self.pool is None or attempt.alike < 1 or result.iterations < LEARNED_AFTER:
            return
        needed = iterations_needed(result)
        slowness = needed / max(attempt.iterations, 1.0)
        self.pool.slowness = float(np.clip(slowness, 1.0, MOST_SLOWNESS))

    def _alternative(self) -> float:
        """Return the expected seconds of the cheapest other candidate."""
        if self.pool is None:
            return float("inf")
        return self.pool.cheapest(indefinite=self.indefinite)

    def _try(self, attempt: Candidate) -> Result | None:
        """Make an attempt; return None if its preconditioner or factors cannot be built."""
        began = time.perf_counter()
        self._patience, self._setup = None, 0.0
        try:
            result = self._direct(attempt) if attempt.method == DIRECT else self._iterated(attempt)
        except _UNSUITED as error:
            if not attempt.optional and not (
                attempt.method == DIRECT and isinstance(error, InvalidMatrix)
            ):
                raise
            self._pass_over(attempt, error, time.perf_counter() - began)
            return None
        except SolveInterrupted as interruption:
            reached = cast(Result, interruption.result)
            self._record(attempt, self._setup, reached.iterations, reached.seconds, "interrupted")
            self.ended_by = Stop.INTERRUPTED
            interruption.result = self._with_all_notes(self._better(reached))
            raise
        result = self._without_patience(attempt, result)
        ended = {s for s in result.stops if s != Stop.CONVERGED}
        self.indefinite |= attempt.method == "cg" and Stop.INDEFINITE in ended
        at_limit = Stop.MAX_ITERATIONS in ended
        self.done[attempt.key] = self._allowed(attempt) if at_limit else None
        if at_limit or ended & _FAILED:
            self._learn(attempt, result)
        if at_limit and attempt.patient and result.iterations < self.budget:
            self.done[attempt.key] = result.iterations
            if not self._gave_up:
                self.waiting.append(Waiting(attempt.expected, attempt))
        reason = "gave up for a cheaper candidate" if self._gave_up else ending_of(result)
        reason = "diverged" if self._diverged else reason
        self._record(attempt, self._setup, result.iterations, result.seconds, reason)
        result = changed(result, M=attempt.label)
        self.ended_by = next(iter(ended & _FINAL), None)
        self.best = self._better(result)
        return result

    def _pass_over(self, attempt: Candidate, error: Exception, seconds: float) -> None:
        """Record that a preconditioner or factors cannot be built."""
        cause = str(error).partition("; ")[0]  # remedies address direct calls
        self._record(attempt, seconds, 0, 0.0, f"failed: {cause}")
        self.done[attempt.key] = None
        if attempt.kind is not None:
            self.notes.append(f"without {attempt.label}: {error}")
        if isinstance(error, InvalidMatrix):
            self.singular.add(attempt.key)

    @property
    def _diverged(self) -> bool:
        return self._patience is not None and self._patience.diverged

    @property
    def _gave_up(self) -> bool:
        return self._patience is not None and self._patience.gave_up

    def _without_patience(self, attempt: Candidate, result: Result) -> Result:
        """Return a result that :class:`Patience` ended as one that reached its iteration limit."""
        patience = self._patience
        if patience is None:
            return result
        self.scale = patience.scale
        if not (patience.gave_up or patience.diverged):
            return result
        if patience.gave_up:
            self.waiting.append(Waiting(patience.rest, attempt))
        instead = Stop.MAX_ITERATIONS if patience.gave_up else Stop.BREAKDOWN
        stops: list[Stop] = [instead if s == Stop.CRITERION else s for s in result.stops]
        return changed(result, stops=stops)

    def _record(
        self, attempt: Candidate, setup: float, iterations: int, seconds: float, reason: str
    ) -> None:
        self.tried.append(
            AttemptRecord(attempt.method, attempt.label, setup, iterations, seconds, reason)
        )

    def _iterated(self, attempt: Candidate) -> Result:
        kind: type[KrylovSolver] = attempt.kind or SOLVERS[attempt.method]
        if attempt.M is not None:  # built before the solver, which starts its own compilation
            self.A.executor.compile_ahead(kind.loop_runs(), self.A.dtype)
        began = time.perf_counter()
        options = self._stop(attempt)
        with borrowed_solver(kind, self.A, attempt.M, **attempt.options, **options) as solver:
            self._setup = time.perf_counter() - began + self.made_in
            self.made_in = 0.0
            result = solver.solve(self.b, self._start(), **self.watching)
            if isinstance(solver, EstimatingCg):
                result = solver.estimated(result)
                self.notes += about_error(result.error, result.condition)
        self.notes += [note for note in result.notes if note not in self.notes]
        return result

    def _direct(self, attempt: Candidate) -> Result:
        began = time.perf_counter()
        stop = RelativeResidual(self.rtol) | AbsoluteResidual(self.atol)
        solver = kept_direct(self.A, attempt.options).with_stop(self.stop or stop)
        self._setup = time.perf_counter() - began
        result = solver.solve(self.b, self._start())
        self.notes += [note for note in solver.notes if note not in self.notes]
        about = about_error(result.error, None) if result.converged else []
        self.notes += about
        if about or not result.converged:
            self.notes += about_constants(self.A, self.b)
        return result

    def _stop(self, attempt: Candidate) -> dict[str, Any]:
        """Return the options that end an attempt: its iteration limit, the shared time limit."""
        options = {"rtol": self.rtol, "atol": self.atol, "maxiter": self.maxiter, "stop": self.stop}
        if attempt.limit is not None and attempt.limit < self.budget:
            options["maxiter"] = attempt.limit
        left = self._time_left()
        stop = self.stop
        if left is not None:
            stop = (self._tolerance() if stop is None else stop) | Time(left)
        self._patience = self._patience_for(attempt)
        if self._patience is not None:
            stop = (self._tolerance() if stop is None else stop) | self._patience
        elif attempt.patient and self._patience_factor == 1:  # the last candidate of the pool
            count = max(SHORT, int(4 * attempt.iterations))
            options["maxiter"] = min(count, self.budget)
        options["stop"] = stop
        return options

    def _patience_for(self, attempt: Candidate) -> Patience | None:
        """Return the criterion that ends an attempt when another candidate seems faster."""
        if not attempt.patient or self._patience_factor is None:
            return None
        pool = self.pool
        if pool is not None and not pool.ready and attempt is pool.first:
            return Patience(
                np.inf, attempt.per_iteration, self.rtol, self.atol, outlook=self._outlook,
                quickest=pool.least_of_small(),
            )  # fmt: skip
        alternative = self._alternative()
        if not np.isfinite(alternative):
            if self._patience_factor == 1:
                return None  # no other candidate is left
            alternative = max(attempt.expected, self._spent())
        known = attempt.iterations if attempt.trusted else 0.0
        return Patience(
            alternative * self._patience_factor, attempt.per_iteration, self.rtol, self.atol, known
        )

    def _outlook(self, rest: float, done: int) -> Outlook | None:
        """Return the estimates of the other candidates while the first one runs.

        None if none of them is likely to be faster than the remaining iterations of the first one.
        """
        assert self.pool is not None
        pool, first = self.pool, self.pool.first
        cheap, least = False, 0.0
        if not pool.ready:
            cheap = pool.seconds_of_structure < CHEAP_STRUCTURE * rest
            least = EARLY_REST * pool.least_without_structure()
            if not cheap and rest <= least:  # before any entry is read
                return None
        trusted = first.trusted and not pool.has_lines
        if not pool.ready:
            if trusted and done < TIMES_OF_KNOWN * first.iterations:
                rest = min(rest, (TIMES_OF_KNOWN * first.iterations - done) * first.per_iteration)
            if (trusted or not cheap) and rest <= least:
                return None
        alternative = self._alternative()
        iterations = first.iterations if trusted else 0.0
        return Outlook(alternative, iterations, pool.yields())

    def _tolerance(self) -> Criterion:
        tolerance = RelativeResidual(self.rtol) | AbsoluteResidual(self.atol)
        return tolerance | Iterations(self.budget)

    def _time_left(self) -> float | None:
        """Return the remaining seconds of the shared time limit, None without a limit."""
        limits = [] if self.stop is None else limits_of(self.stop, Time, "seconds")
        if self.seconds_left is not None:
            limits.append(self.seconds_left)
        elif not self.tried:
            return None  # the criterion itself measures the time
        return max(min(limits) - self._spent(), 0.0) if limits else None

    # ---- solved columns keep their solutions

    def _start(self) -> Any:
        """Return the initial guess of an attempt: solved columns start at their solutions."""
        best = self.best
        solved = [c for c, s in enumerate(best.stops) if s == Stop.CONVERGED] if best else []
        if best is None or not solved:
            return self.x0
        executor, converter = self.A.executor, vector_converter(self.A)
        block, initial = converter.to_blocks(x=best.x, x0=self.x0)
        assert block is not None
        start = executor.zeros(tuple(block.shape), block.dtype)
        if initial is not None:
            executor.run(vector.axpby, as_dtype(executor, initial, block.dtype), start, 1.0, 0.0)
        take(executor, start, block, solved)
        return converter.from_block(start, self.b)

    def _better(self, result: Result) -> Result:
        """Return the better of the best and a new result, column by column."""
        old = self.best
        if old is None:
            return result
        norms = [np.atleast_1d(r.residual_norm) for r in (old, result)]
        keep = [
            c
            for c, (before, after) in enumerate(zip(old.stops, result.stops, strict=True))
            if before == Stop.CONVERGED
            or (after != Stop.CONVERGED and not norms[1][c] < norms[0][c])
        ]
        if len(keep) == len(old.stops):
            return old
        return merged(old, result, keep, self.A, self.b) if keep else result


def iterations_needed(result: Result) -> float:
    """Estimate the iterations that a solve needs, from the rate at which its residual falls.

    The estimate is the geometric mean of two extrapolations: with the rate since the start, and
    with the rate over the second half of the iterations. The second one exceeds the first on a
    plateau, but plateaus end. The slowest column counts.
    """
    done = max(result.iterations, 1)
    size = result.residuals
    levels = [_logarithm_of_least(part) for part in (size[:1], size[: 1 + done // 2], size)]
    with np.errstate(all="ignore"):
        missing = np.maximum(levels[2] - np.log(np.atleast_1d(result.threshold)), 0.0)
    counts = []
    for begun, part in ((levels[0], done), (levels[1], done - done // 2)):
        with np.errstate(all="ignore"):
            more = part * missing / np.maximum(begun - levels[2], 0.0)
        # without progress the count is unknown and large
        more = np.where(missing > 0, np.nan_to_num(more, nan=np.inf, posinf=np.inf), 0.0)
        counts.append(min(done + float(np.max(more, initial=0.0)), PLATEAU * done))
    return float(np.sqrt(counts[0] * counts[1]))


def _logarithm_of_least(residuals: Any) -> Any:
    """Return the logarithm of the smallest residual of each column; infinity if there is none."""
    columns = np.asarray(residuals).reshape(len(residuals), -1)
    known = np.where(np.isfinite(columns), columns, np.inf)
    with np.errstate(all="ignore"):
        return np.log(known.min(axis=0, initial=np.inf))


def ending_of(result: Result) -> str:
    """Return how an attempt ended, in a few words."""
    reason = result.reason
    why = reason.rpartition("column ")[2].partition(": ")
    return (why[2] if why[0].isdigit() else reason).partition(":")[0]
