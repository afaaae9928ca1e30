"""Fixed costs of calls on a small system: ``python -m wollemi_bench.fixed_costs --executor cuda``.

The system is so small that the host's work and the launches take most of the time. Each line is
the median of many calls, each with a wait for the device, with the calls of Python functions and
the launches on the device. ``--profile CALL`` prints the functions that take the time of a call.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import time
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

import wollemi as wl
from wollemi.core.executor import Executor

from .cases import case

#: Unknowns along each axis of the 7-point stencil.
SIDE = 48

#: Timed calls, in batches of which each is one sample.
BATCHES, CALLS = 15, 20

Call = Callable[[], Any]


class FixedCost(NamedTuple):
    """The cost of one call: quartiles in seconds, and the calls of Python functions."""

    name: str
    low: float
    median: float
    high: float
    python_calls: int


def calls(on: Executor, side: int = SIDE) -> dict[str, Call]:
    """Return the calls by name, on the 7-point stencil with ``side`` points along each axis.

    Examples
    --------
    >>> import wollemi as wl
    >>> from wollemi_bench.fixed_costs import calls
    >>> list(calls(wl.executor("reference"), 3))[:2]
    ['A @ x', 'A.apply(x, out=y)']
    """
    S = case(f"stencil7:{side}").matrix()
    A, changing = (wl.Csr(S, executor=on) for _ in range(2))
    rng = np.random.default_rng(0)
    b, data = on.from_host(rng.standard_normal(S.shape[0])), on.from_host(1.5 * S.data)
    y = on.from_host(np.zeros(S.shape[0]))
    solver = wl.solvers.Cg(A, stop=wl.stop.Iterations(1))
    scaled = wl.solvers.Cg(A, "jacobi", stop=wl.stop.Iterations(1))
    ten = wl.solvers.Cg(A, stop=wl.stop.Iterations(10))

    def renewed() -> Any:
        changing.update_values(data)
        return changing @ b

    return {
        "A @ x": lambda: A @ b,
        "A.apply(x, out=y)": lambda: A.apply(b, out=y),
        "new values, A @ x": renewed,
        "Cg.solve, 1 iteration": lambda: solver.solve(b),
        "Cg.solve with Jacobi, 1 iteration": lambda: scaled.solve(b),
        "Cg.solve, 10 iterations": lambda: ten.solve(b),
        "wl.linalg.cg, 1 iteration": lambda: wl.linalg.cg(A, b, rtol=0.0, maxiter=1),
        "wl.solve, repeated": lambda: wl.solve(A, b, rtol=1e-8),
        # so large a tolerance leaves the fixed cost
        "wl.solve, repeated, to 0.5": lambda: wl.solve(A, b, rtol=0.5),
    }


def measured(on: Executor, name: str, call: Call) -> FixedCost:
    """Return the cost of a call."""
    for _ in range(3):
        call()
    on.synchronize()
    samples = []
    for _ in range(BATCHES):
        began = time.perf_counter()
        for _ in range(CALLS):
            call()
            on.synchronize()
        samples.append((time.perf_counter() - began) / CALLS)
    low, median, high = (float(q) for q in np.percentile(samples, (25, 50, 75)))
    return FixedCost(name, low, median, high, _profiled(call, 1).total_calls)


def _profiled(call: Call, count: int) -> Any:
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(count):
        call()
    profiler.disable()
    return pstats.Stats(profiler, stream=io.StringIO())


def profile(call: Call, lines: int = 40, count: int = 100) -> str:
    """Return the functions with the most time of their own, of ``count`` calls."""
    stats = _profiled(call, count)
    stats.sort_stats("tottime").print_stats(lines)
    return str(stats.stream.getvalue())


def main(
    executor: Annotated[str, typer.Option(help="reference, omp, cuda, ...")] = "omp",
    side: Annotated[int, typer.Option(help="Points along each axis.")] = SIDE,
    only: Annotated[str, typer.Option(help="Only calls with this in their name.")] = "",
    functions: Annotated[int, typer.Option(help="Functions of each call's profile.")] = 0,
) -> None:
    """Print the table, and the profiles."""
    on = wl.executor(executor)
    print(f"| call, {side}^3 on {on.name} | us | quartiles | Python calls |")
    print("| --- | --: | --- | --: |")
    found = {name: call for name, call in calls(on, side).items() if only in name}
    for name, call in found.items():
        cost = measured(on, name, call)
        spread = f"{cost.low * 1e6:.1f} to {cost.high * 1e6:.1f}"
        print(f"| {name} | {cost.median * 1e6:.1f} | {spread} | {cost.python_calls} |", flush=True)
    for name, call in found.items():
        if functions:
            print(f"\n{name}\n{profile(call, functions)}")


if __name__ == "__main__":
    typer.run(main)
