"""``wollemi bench solve``: iterations of Krylov solvers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from wollemi.core.executor import Executor
from wollemi.core.formats import Csr
from wollemi.core.operation import Cost
from wollemi.core.profiler import profile
from wollemi.core.result import Result
from wollemi.core.stopping import Iterations
from wollemi.solvers.registry import SOLVERS

from .cases import SEED, Case, stencil5
from .contest import Outcome
from .peers import Peer, SciPy, SolveCase
from .problem import OURS, Offer, OfferFacts, Problem, offer_of
from .spmv import random_vector
from .task import Task
from .timing import Timing

DEFAULT_CASES = ("stencil7:100",)
DEFAULT_METHODS = ("cg", "bicgstab", "cgs", "gmres")

#: The cycle length that the literature compares GMRES with.
RESTART = 30

#: Iterations of a timed solve: one cycle of GMRES, and few enough that rounding has not yet told
#: two correct implementations apart.
ITERATIONS = 30

#: Two correct implementations differ by rounding that the recurrence has grown: by 6e-5 after 30
#: iterations of BiCGSTAB on a million unknowns, by 1e-12 of CG.
AGREEMENT = {"cg": 1e-6, "gmres": 1e-6, "bicgstab": 1e-2, "cgs": 1e-2}

#: Where right sides that differ by an ulp lead SciPy further apart than this share of it, other
#: programs are no measure any more: sums in other orders are off by hundreds of ulps. CGS on the
#: stand-in of rajat31 / 8 is 8e-8 of its norm apart after 15 iterations, and all of it after 20.
DETERMINED = 1e-3

#: The overhead is the slope between solves of these numbers of iterations.
FEW, MANY = 100, 1100
UNKNOWNS = 100


def whole_cycles(method: str, iterations: int) -> int:
    """Return this number of iterations, or whole cycles of GMRES: SciPy counts cycles."""
    return max(1, iterations // RESTART) * RESTART if method == "gmres" else iterations


def fixed_solve(method: str, A: Csr, b: Any, iterations: int) -> Callable[[], Result]:
    """Return a function that does iterations from zero, fewer if there is a breakdown."""
    extra: dict[str, Any] = {"restart": RESTART} if method == "gmres" else {}
    solver = SOLVERS[method](A, stop=Iterations(iterations), **extra)
    return lambda: solver.solve(b)


def exactly(solve: Callable[[], Result], iterations: int) -> Callable[[], Any]:
    """Return a function that returns a solve's iterate, and raises if iterations are missing."""

    def call() -> Any:
        result = solve()
        if result.iterations != iterations:
            raise RuntimeError(f"{result.iterations} of {iterations} iterations: {result.reason}")
        return result.x

    return call


class Solve(Problem):
    """A number of iterations of a method on ``A x = b`` from zero.

    Parameters
    ----------
    method : str
        ``cg``, ``bicgstab``, ``cgs`` or ``gmres``.
    S : scipy.sparse.csr_array
        The matrix.
    iterations : int
        That are timed.
    """

    kind = "solve"

    def __init__(self, method: str, S: sp.csr_array, iterations: int) -> None:
        self.method, self.S = method, S
        self.per = self.iterations = whole_cycles(method, iterations)
        self.counted = min(self.iterations, whole_cycles(method, ITERATIONS))
        self.b = random_vector(S.shape[0], S.dtype)
        self._expected: Any
        self._expected, self.compared = self.determined()
        cycles = f", restart {RESTART}" if method == "gmres" else ""
        self.notes = [f"{self.iterations} iterations{cycles}"]
        if self.compared < self.counted:
            self.notes.append(
                f"compared after {self.compared} iterations: "
                "SciPy's later ones depend on the last bits of b"
            )

    def determined(self) -> tuple[Any, int]:
        """Return SciPy's last iterate that means something, and which one it is.

        Rounding grows from iteration to iteration, with some methods and matrices until nothing of
        an iterate is left that another correct program must have too. So SciPy solves for a right
        side in which every number is off by an ulp as well, and fewer iterations are compared until
        both agree much better than two programs have to.
        """
        signs = np.random.default_rng(SEED).choice((-1.0, 1.0), self.b.shape)
        nudged = (self.b * (1.0 + np.finfo(self.b.dtype).eps * signs)).astype(self.b.dtype)
        compared = self.counted
        while True:
            x, other = (self.iterate(SciPy(), b, compared)() for b in (self.b, nudged))
            if compared == 1 or _apart(other, x) <= DETERMINED * AGREEMENT[self.method]:
                return x, compared
            compared = max(1, compared // 2)

    def iterate(
        self, peer: Peer, b: Any, iterations: int, tick: Callable[..., None] | None = None
    ) -> Callable[[], Any]:
        """Return a function that does iterations with a library, in cycles that are no longer."""
        restart = min(RESTART, iterations)
        return peer.solve(SolveCase(self.method, self.S, b, iterations, restart, tick))

    def ours(self, executor: Executor) -> list[Offer]:
        """Return our solver."""
        A = Csr(self.S, executor=executor)
        b = executor.from_host(self.b)
        last: list[Result] = []

        def make() -> Callable[[], Any]:
            solve = fixed_solve(self.method, A, b, self.iterations)

            def call() -> Any:
                last[:] = [solve()]
                return last[0].x

            return call

        def check() -> Callable[[], Any]:
            return exactly(fixed_solve(self.method, A, b, self.compared), self.compared)

        def facts() -> OfferFacts:
            each = iteration_cost(self.method, A, b, self.counted)
            times = self.iterations / self.counted
            cost = Cost(round(each.bytes * times), round(each.flops * times))
            return OfferFacts(cost, kernel=A.plan.kernel)

        def finish(x: Any, facts: OfferFacts) -> None:
            facts.iterations, facts.residual = last[0].iterations, self.residual(x)
            if facts.iterations < self.iterations:
                facts.notes.append(f"ended early: {last[0].reason}")

        to_host = executor.to_host
        return [
            Offer(
                OURS,
                make,
                executor.synchronize,
                to_host,
                check=check,
                facts=facts,
                finish=finish,
                host_clock=True,
            )
        ]

    def theirs(self, peer: Peer) -> list[Offer]:
        """Return a library's solver."""
        timed = self.iterate(peer, self.b, self.iterations)

        def finish(x: Any, facts: OfferFacts) -> None:
            facts.residual = self.residual(x)
            facts.iterations = self.iterations
            if self.iterations > self.counted and peer.counts(self.method):
                ticks: list[None] = []
                self.iterate(peer, self.b, self.iterations, lambda *_: ticks.append(None))()
                facts.iterations = len(ticks)

        extra: dict[str, Any] = (
            {}
            if self.compared == self.iterations
            else {"check": lambda: self.iterate(peer, self.b, self.compared)}
        )
        return [offer_of(peer, timed, finish=finish, capture=None, host_clock=True, **extra)]

    def wrong(self, x: Any) -> str:
        """Return by how much an iterate is off, if it is."""
        difference = _apart(x, self._expected)
        if difference <= AGREEMENT[self.method]:
            return ""
        return f"differs from SciPy's iterate by {difference:.1e} of its norm"

    def forget(self) -> None:
        """Let go of SciPy's iterate."""
        self._expected = None

    def residual(self, x: Any) -> float:
        """Return the true relative residual."""
        return float(np.linalg.norm(self.b - self.S @ x) / np.linalg.norm(self.b))


def _apart(x: Any, expected: Any) -> float:
    """Return the difference from the expected vector relative to its norm."""
    return float(np.linalg.norm(x - expected) / (np.linalg.norm(expected) or 1.0))


def tasks(
    cases: Sequence[Case],
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    iterations: int = ITERATIONS,
    dtype: str = "float64",
) -> list[Task]:
    """Return the contest of each case and method.

    Seconds belong to one iteration: of a whole solve, the true residuals at its ends included,
    divided by its iterations.
    """
    return [
        Task(f"solve/{method}", case, partial(Solve, method, iterations=iterations), dtype)
        for case in cases
        for method in methods
    ]


def iteration_cost(method: str, A: Csr, b: Any, iterations: int) -> Cost:
    """Return the bytes and flops of a solve by the operations' own costs, without its ends."""
    totals = []
    for count in (iterations, 2 * iterations):
        with profile() as seen:
            exactly(fixed_solve(method, A, b, count), count)()
        totals.append(np.array([(e.bytes, e.flops) for e in seen]).sum(axis=0))
    moved, flops = (int(n) for n in totals[1] - totals[0])
    return Cost(moved, flops)


def stubborn(unknowns: int) -> sp.csr_array:
    """Return a small system so badly scaled that CG never ends: diag(d) A diag(d)."""
    side = round(unknowns**0.5)
    scale = sp.diags_array(np.logspace(0, 5, side * side))
    return sp.csr_array(scale @ stencil5(side) @ scale)


class Overhead(Problem):
    """Short and long solves by CG with hardly any work in an iteration.

    The record is the slope between them: the cost of a solve's ends is not in it.
    """

    kind = "solve"
    notes = (f"slope between {FEW} and {MANY} iterations",)

    def __init__(self, S: sp.csr_array) -> None:
        self.S = S
        self.b = random_vector(S.shape[0], S.dtype)

    def ours(self, executor: Executor) -> list[Offer]:
        """Return a short solve and a long one."""
        A = Csr(self.S, executor=executor)
        b = executor.from_host(self.b)
        return [
            Offer(
                f"{OURS} {count}",
                partial(exactly, fixed_solve("cg", A, b, count), count),
                executor.synchronize,
                executor.to_host,
                host_clock=True,
            )
            for count in (FEW, MANY)
        ]

    def theirs(self, peer: Peer) -> list[Offer]:
        """Return a short solve and a long one."""
        return [
            offer_of(
                peer,
                peer.solve(SolveCase("cg", self.S, self.b, count, RESTART)),
                f"{peer.name} {count}",
                capture=None,
                host_clock=True,
            )
            for count in (FEW, MANY)
        ]

    def wrong(self, result: Any) -> str:
        """Return whether there are numbers: iterates of such a system agree in no digit."""
        return "" if np.all(np.isfinite(result)) else "not finite"

    def concluded(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Return the time of an iteration."""
        found = {outcome.name: outcome for outcome in outcomes}
        slopes = []
        for name in (OURS, SciPy.name):
            few, many = (found.get(f"{name} {count}", Outcome(name)) for count in (FEW, MANY))
            timing = None
            if few.timing is not None and many.timing is not None:
                each = np.subtract(many.timing.samples, few.timing.samples) / (MANY - FEW)
                timing = Timing(tuple(map(float, each)), many.timing.calls)
            trouble = few.trouble or many.trouble
            slopes.append(Outcome(name, timing, trouble, OfferFacts(method="slope")))
        return slopes


def overhead() -> list[Task]:
    """Return the contest that measures a CG iteration with hardly any work in it."""
    case = Case(f"stubborn:{UNKNOWNS}", partial(stubborn, UNKNOWNS))
    return [Task("overhead/cg", case, Overhead, peers=(SciPy(),))]
