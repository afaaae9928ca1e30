"""Goals for products under JAX's jit: the part ``jax``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import wollemi as wl
from wollemi.core.executor import Executor

from .acceptance import Goal, ratio, seconds, time_of
from .cases import case
from .page.numbers import Spread

#: Columns of the dense operand.
COLUMNS = 64
#: Operations in the long program and in the short one.
LONG, SHORT = 64, 4


def goals(on: Executor, scale: int) -> Iterator[Goal]:
    """Yield the host's time of an operation, and spmm compared with ours and with BCOO."""
    import jax
    from jax.experimental.sparse import BCOO

    from wollemi.interop import jax as wj

    S = case(f"rmat:16,{max(1000, 1_000_000 // scale)}").matrix().astype(np.float32)
    A = wl.Csr(S, executor=on)
    yield seconds("host time of an operation under jit", _host_time(jax, wj, on), "us", most=15.0)
    B = jax.numpy.ones((S.shape[1], COLUMNS), np.float32)
    ours = jax.jit(lambda B: wj.spmm(A, B))
    theirs = BCOO.from_scipy_sparse(S)
    peer = jax.jit(lambda M, B: M @ B)
    within = _time_of(lambda: ours(B), on)
    direct_B = on.xp.ones((S.shape[1], COLUMNS), np.float32)
    alone = time_of(lambda: wl.spmm(A, direct_B), on)
    bcoo = _time_of(lambda: peer(theirs, B), on)
    shape = f"{S.nnz} entries, {COLUMNS} columns"
    yield seconds(f"spmm under jit, {shape}", within, "us")
    yield ratio(f"spmm under jit over wl.spmm, {shape}", within, alone, most=1.03)
    yield ratio(f"BCOO over spmm, {shape}", bcoo, within)


def _time_of(call: Callable[[], Any], on: Executor) -> Spread:
    """Return the time of a program of JAX, of which calls follow each other without a wait.

    ``wl.spmm`` is timed in the same way.
    """
    last: list[Any] = []

    def submit() -> None:
        last[:] = [call()]

    def wait() -> None:
        last[0].block_until_ready()

    return time_of(submit, on, wait)


def _host_time(jax: Any, wj: Any, on: Executor) -> Spread:
    """Return the additional time of an operation in a program of many small ones."""
    tiny = wl.Csr(case("stencil5:8").matrix().astype(np.float32), executor=on)
    x = jax.numpy.ones((tiny.shape[1], 1), np.float32)

    def chain(count: int) -> Any:
        def run(x: Any) -> Any:
            for _ in range(count):
                x = wj.spmm(tiny, x, alpha=0.125)
            return x

        return jax.jit(run)

    programs = {count: chain(count) for count in (SHORT, LONG)}
    found = []
    for turn in range(12):
        took = {}
        for count, program in programs.items():
            program(x).block_until_ready()
            began = time.perf_counter()
            program(x).block_until_ready()
            took[count] = time.perf_counter() - began
        if turn:  # the first one compiles
            found.append((took[LONG] - took[SHORT]) / (LONG - SHORT))
    low, median, high = (float(q) for q in np.percentile(found, (25, 50, 75)))
    return Spread(low, median, high)
