"""Attention on random patterns by rows, by slabs and by the rule, on a GPU.

``python -m wollemi_bench.slab_table`` times ``csr.fusedmm_softmax`` and its gradients, logarithms
of totals known, by turns: medians of replays of graphs of ten calls, microseconds. With ``--only
1024`` only the patterns whose names have that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.gpu.products.csr import Adapter

from .clocks import between_events, capture_by_cupy

#: Calls of a graph.
CALLS = 10
#: What is timed: algorithms by rows and by slabs, and what the rule takes.
KERNELS = ("row-split", "slab-mma", "auto")


class Case(NamedTuple):
    """A pattern of so many rows and columns at random, and heads of so many columns."""

    m: int
    n: int
    density: float
    heads: int
    columns: int

    @property
    def name(self) -> str:
        """As the table shows it."""
        return f"{self.m} x {self.n}, {self.density:.2%}, {self.heads} of {self.columns}"


def cases() -> Iterator[Case]:
    """Yield the grid of 4096 x 4096, and some others.

    Examples
    --------
    >>> from wollemi_bench.slab_table import cases
    >>> next(cases()).name
    '4096 x 4096, 0.25%, 16 of 64'
    """
    for heads, columns in ((16, 64), (8, 64), (4, 64), (1, 64), (16, 32), (8, 32)):
        for density in (0.0025, 0.005, 0.01, 0.02, 0.04):
            yield Case(4096, 4096, density, heads, columns)
    yield Case(16384, 16384, 0.0025, 4, 64)
    yield Case(16384, 16384, 0.01, 4, 64)
    yield Case(2048, 2048, 0.02, 32, 64)
    yield Case(1024, 1024, 0.02, 16, 64)
    yield Case(1024, 1024, 0.05, 16, 64)
    yield Case(1024, 1024, 0.02, 64, 64)
    yield Case(16384, 1024, 0.02, 4, 64)
    yield Case(1024, 16384, 0.005, 16, 64)


def _calls(case: Case, dtype: str) -> dict[tuple[str, str], Callable[[], Any]]:
    """Return what computes the product and the gradients, by algorithm."""
    import cupy

    rng = np.random.default_rng(0)
    S = sp.random_array((case.m, case.n), density=case.density, rng=rng, dtype="f4").tocsr()
    S.sort_indices()
    executor: Any = wl.executor("cuda:0")
    arrays = (np.ones(S.nnz, dtype), S.indices, S.indptr)
    A = wl.Csr(arrays, shape=S.shape, executor=executor)
    drawn = cupy.random.default_rng(1)

    def dense(rows: int) -> Any:
        shape = case.heads, rows, case.columns
        return drawn.standard_normal(shape, dtype=np.float32).astype(dtype)

    C, B, D, G = dense(case.m), dense(case.n), dense(case.n), dense(case.m)
    E, logs = cupy.empty_like(G), cupy.empty(G.shape[:2], np.float32)
    made = [cupy.empty_like(x) for x in (C, B, D)]
    alpha = case.columns**-0.5
    found: dict[tuple[str, str], Callable[[], Any]] = {}
    for kernel in KERNELS:
        plan: Any = A.plan_for("fusedmm", case.columns, kernel, C.dtype)

        def product(plan: Any = plan) -> None:
            operands = (None, C, B, D, E, logs, alpha, "softmax")
            plan.algorithm.run(Adapter(executor), A, plan.state, *operands)

        def gradients(plan: Any = plan) -> None:
            operands = (None, C, B, D, G, E, logs, None, *made, alpha, "softmax")
            plan.algorithm.gradients(Adapter(executor), A, plan.state, *operands)

        found[kernel, "product"], found[kernel, "gradients"] = product, gradients
    return found


def _row(case: Case, rounds: int, dtype: str) -> str:
    import cupy

    replays = {}
    for key, call in _calls(case, dtype).items():
        call()  # lists and programs are made before a graph is
        replays[key] = capture_by_cupy(call, CALLS)
    times: dict[tuple[str, str], list[float]] = {key: [] for key in replays}
    for _ in range(rounds):
        for key, replay in replays.items():
            times[key].append(between_events(cupy.cuda, replay) * 1e6 / CALLS)
    cells = " | ".join(
        " / ".join(f"{np.median(times[kernel, what]):.1f}" for kernel in KERNELS)
        for what in ("product", "gradients")
    )
    return f"| {case.name} | {cells} |"


def main(rounds: int = 5, dtype: str = "float16", only: str = "") -> None:
    """Print the table: medians."""
    print(f"| pattern | product, {' / '.join(KERNELS)} | gradients |")
    print("|---|---|---|")
    for case in cases():
        if only in case.name:
            print(_row(case, rounds, dtype), flush=True)


if __name__ == "__main__":
    import typer

    typer.run(main)
