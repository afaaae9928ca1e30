"""Goals for the fixed costs of single calls, and for plans: the part ``fixed``."""

from __future__ import annotations

import time
from collections.abc import Iterator

import wollemi as wl
from wollemi.core.executor import Executor

from . import fixed_costs
from .acceptance import Goal, ratio, seconds, time_of
from .cases import case
from .page.numbers import Spread

#: Microseconds at most, by the name of the call.
MOST = {
    "A @ x": 15.0,
    "new values, A @ x": 60.0,
    "Cg.solve, 1 iteration": 120.0,
    "wl.linalg.cg, 1 iteration": 250.0,
    "wl.solve, repeated, to 0.5": 250.0,
}


def goals(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield the cost of each call on a small system, and of a plan of a large one."""
    side = fixed_costs.SIDE if scale == 1 else 8
    for name, call in fixed_costs.calls(on, side).items():
        cost = fixed_costs.measured(on, name, call)
        found = Spread(cost.low, cost.median, cost.high)
        yield seconds(f"{name}, {side}^3", found, "us", most=MOST.get(name))
    yield from _plans(on, max(8, round(180 / scale ** (1 / 3))))


def _plans(on: Executor, side: int) -> Iterator[Goal]:
    S = case(f"stencil7:{side}").matrix()
    x = on.xp.ones(S.shape[0])
    A = wl.Csr(S, executor=on)
    product = time_of(lambda: A @ x, on)
    forward, transposed = (_first(S, on, x, name) for name in ("A @ x", "A.T @ x"))
    entries = f"{S.nnz / 1e6:.1f} M entries"
    yield seconds(f"product, {entries}", product, "us")
    yield ratio(f"plan and first A @ x over a product, {entries}", forward, product, most=5.0)
    yield ratio(f"first A.T @ x over a product, {entries}", transposed, product)


def _first(S: object, on: Executor, x: object, name: str) -> Spread:
    """Return the time of a first product with matrices that are made anew."""
    found = []
    for _ in range(4):
        A = wl.Csr(S, executor=on)
        on.synchronize()
        began = time.perf_counter()
        (A if name == "A @ x" else A.T) @ x
        on.synchronize()
        found.append(time.perf_counter() - began)
    found = sorted(found[1:])  # the first compiles
    return Spread(found[0], found[1], found[2])
