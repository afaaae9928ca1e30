"""``wollemi bench solve``: iterations of Krylov solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.executor import Executor
from ..core.formats import Csr
from ..core.operation import Cost
from ..core.profiler import profile
from ..core.stopping import Iterations
from ..solvers.choose import METHODS
from .cases import Case, stencil5
from .contest import Contest, Outcome, Settings
from .peers import Absent, Peer, SciPy
from .report import Record, records_of
from .spmv import OURS, random_vector
from .timing import Contender, Timing, interleave

DEFAULT_CASES = ("stencil7:100",)
DEFAULT_METHODS = ("cg", "bicgstab", "cgs", "gmres")

#: The cycle length that the literature compares GMRES with.
RESTART = 30

#: Iterations of a timed solve: one cycle of GMRES, and few enough that rounding has not yet told
#: two correct implementations apart.
ITERATIONS = 30

#: Two correct implementations differ by rounding that the recurrence has grown: by 6e-5 after 30
#: iterations of BiCGSTAB on a million unknowns, whose path depends on it, by 1e-12 of CG.
AGREEMENT = {"cg": 1e-6, "gmres": 1e-6, "bicgstab": 1e-2, "cgs": 1e-2}

#: The overhead is the slope between solves of so many iterations, on so many unknowns.
FEW, MANY = 100, 1100
UNKNOWNS = 100


def fixed_solve(method: str, A: Csr, b: Any, iterations: int) -> Callable[[], Any]:
    """Return what does exactly so many iterations from zero and returns the iterate."""
    extra: dict[str, Any] = {"restart": RESTART} if method == "gmres" else {}
    solver = METHODS[method](A, stop=Iterations(iterations), **extra)

    def call() -> Any:
        result = solver.solve(b)
        if result.iterations != iterations:
            raise RuntimeError(f"{result.iterations} of {iterations} iterations: {result.reason}")
        return result.x

    return call


def run(
    cases: Sequence[Case],
    executor: Executor,
    peers: Sequence[Peer],
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    iterations: int = ITERATIONS,
    dtype: str = "float64",
    settings: Settings | None = None,
) -> Iterator[Record]:
    """Yield the records of each case and method as soon as they are there.

    Seconds are those of one iteration: of a whole solve, the true residuals at its ends included,
    divided by its iterations.
    """
    for case in cases:
        S = case.matrix(dtype)
        A = Csr(S, executor=executor)
        b = random_vector(S.shape[0], S.dtype)
        for method in methods:
            # SciPy counts whole cycles of GMRES
            count = max(1, iterations // RESTART) * RESTART if method == "gmres" else iterations
            contest = solve_contest(method, S, A, b, peers, count)
            outcomes, bandwidth = contest.run(executor, settings or Settings())
            yield from records_of(
                f"solve/{method}",
                case.name,
                A,
                outcomes,
                bandwidth,
                cost=contest.cost,
                per=count,
                notes=[f"{count} iterations" + (f", restart {RESTART}" * (method == "gmres"))],
            )


def solve_contest(
    method: str,
    S: sp.csr_array,
    A: Csr,
    b: np.ndarray[Any, Any],
    peers: Sequence[Peer],
    iterations: int,
) -> Contest:
    """Return the contest of so many iterations of a method."""
    executor = A.executor
    native = executor.from_host(b)
    call = fixed_solve(method, A, native, iterations)
    contenders = [Contender(OURS, call, executor.synchronize, executor.to_host)]
    absent = {}
    for peer in peers:
        try:
            peer.version()
            contenders.append(peer.contender(peer.solve(method, S, b, iterations, RESTART)))
        except Absent as error:
            absent[peer.name] = str(error)
    expected = SciPy().solve(method, S, b, iterations, RESTART)()
    size = float(np.linalg.norm(expected))

    def check(x: Any) -> str:
        difference = float(np.linalg.norm(x - expected)) / (size or 1.0)
        if difference <= AGREEMENT[method]:
            return ""
        return f"differs from SciPy's iterate by {difference:.1e} of its norm"

    return Contest(contenders, check, iteration_cost(method, A, native, iterations), absent)


def iteration_cost(method: str, A: Csr, b: Any, iterations: int) -> Cost:
    """Return the bytes and flops of a solve by the operations' own costs, without its ends."""
    totals = []
    for count in (iterations, 2 * iterations):
        with profile() as seen:
            fixed_solve(method, A, b, count)()
        totals.append(np.array([(e.bytes, e.flops) for e in seen]).sum(axis=0))
    moved, flops = (int(n) for n in totals[1] - totals[0])
    return Cost(moved, flops)


def stubborn(unknowns: int) -> sp.csr_array:
    """Return a small system so badly scaled that CG never ends: diag(d) A diag(d)."""
    side = round(unknowns**0.5)
    scale = sp.diags_array(np.logspace(0, 5, side * side))
    return sp.csr_array(scale @ stencil5(side) @ scale)


def overhead(executor: Executor, settings: Settings | None = None) -> Iterator[Record]:
    """Yield what a CG iteration costs when there is hardly any work in it.

    The slope between short and long solves: what a solve costs at its ends is not in it.
    """
    settings = settings or Settings()
    S = stubborn(UNKNOWNS)
    A = Csr(S, executor=executor)
    b = random_vector(S.shape[0], S.dtype)
    native = executor.from_host(b)
    contenders = []
    for count in (FEW, MANY):
        call = fixed_solve("cg", A, native, count)
        contenders.append(Contender(f"{OURS} {count}", call, executor.synchronize))
        peer = SciPy().solve("cg", S, b, count, RESTART)
        contenders.append(Contender(f"scipy {count}", peer))
    times = interleave(
        contenders,
        batches=settings.batches,
        batch_seconds=settings.batch_seconds,
        budget=settings.budget,
    )
    outcomes = []
    for name in (OURS, "scipy"):
        few, many = times[f"{name} {FEW}"], times[f"{name} {MANY}"]
        slopes = np.subtract(many.samples, few.samples) / (MANY - FEW)
        outcomes.append(Outcome(name, Timing(tuple(slopes), many.calls)))
    yield from records_of(
        "overhead/cg",
        f"stubborn:{UNKNOWNS}",
        A,
        outcomes,
        {},
        notes=[f"slope between {FEW} and {MANY} iterations"],
    )
