"""Attention on random patterns by rows, by slabs, by tiles and by the rule, on a GPU.

``python -m wollemi_bench.slab_table`` times ``csr.fusedmm_softmax`` and its gradients, logarithms
of totals known, by turns: medians of replays of graphs of ten calls, microseconds. With
``--only 1024`` only the patterns with that in their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import wollemi as wl
from wollemi.backends.cuda.products.slab_attention import WIDTHS
from wollemi.backends.gpu.products.csr import CupyAdapter
from wollemi.core.calls import FusedmmCall, GradientCall

from .clocks import between_events, capture_by_cupy

#: Calls of a graph.
CALLS = 10
#: The timed algorithms: by rows, by slabs and by tiles, and the rule's choice. Slabs are for up to
#: 64 columns.
KERNELS = ("row-split", "slab-mma", "tile-mma", "auto")


class Case(NamedTuple):
    """A random pattern of a size, and heads of a width."""

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
    percent = {
        (16, 64): (0.25, 0.5, 1, 2, 3, 4, 5, 8),
        (8, 64): (0.25, 0.5, 1, 2, 4),
        (4, 64): (0.5, 1, 2, 4),
        (1, 64): (0.5, 1, 4),
        (16, 32): (0.25, 0.5, 1, 2, 4, 8),
        (8, 32): (0.5, 1, 2, 4),
        (16, 40): (1, 4),
        (16, 48): (1,),
        (16, 56): (1,),
        (8, 96): (1, 4),
        (8, 128): (0.5, 1, 2, 3, 4, 5, 8),
        (16, 128): (1, 4),
    }
    for (heads, columns), densities in percent.items():
        for density in densities:
            yield Case(4096, 4096, density / 100, heads, columns)
    yield Case(16384, 16384, 0.0025, 4, 64)
    yield Case(16384, 16384, 0.01, 4, 64)
    yield Case(8192, 8192, 0.005, 8, 64)
    yield Case(2048, 2048, 0.02, 32, 64)
    yield Case(1024, 1024, 0.02, 16, 64)
    yield Case(1024, 1024, 0.05, 16, 64)
    yield Case(1024, 1024, 0.02, 64, 64)
    yield Case(16384, 1024, 0.02, 4, 64)
    yield Case(1024, 16384, 0.005, 16, 64)


def _calls(case: Case, dtype: str) -> dict[tuple[str, str], Callable[[], Any]]:
    """Return the functions that compute the product and the gradients, by algorithm."""
    import cupy

    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((case.m, case.n), np.float32) < case.density)
    indptr = np.searchsorted(rows, np.arange(case.m + 1)).astype(np.int32)
    executor: Any = wl.executor("cuda:0")
    arrays = (np.ones(rows.size, dtype), columns.astype(np.int32), indptr)
    A = wl.Csr(arrays, shape=(case.m, case.n), executor=executor)
    drawn = cupy.random.default_rng(1)

    def dense(rows: int) -> Any:
        shape = case.heads, rows, case.columns
        return drawn.standard_normal(shape, dtype=np.float32).astype(dtype)

    C, B, D, G = dense(case.m), dense(case.n), dense(case.n), dense(case.m)
    E, logs = cupy.empty_like(G), cupy.empty(G.shape[:2], np.float32)
    of_C, of_B, of_D = (cupy.empty_like(x) for x in (C, B, D))
    alpha = case.columns**-0.5
    found: dict[tuple[str, str], Callable[[], Any]] = {}
    for kernel in KERNELS:
        if kernel == "slab-mma" and case.columns > WIDTHS[-1]:
            continue
        plan: Any = A.plan_for("fusedmm", case.columns, kernel, C.dtype)

        def product(plan: Any = plan) -> None:
            call = FusedmmCall(A, None, C, B, D, E, logs, alpha, "softmax")
            plan.algorithm.run(CupyAdapter(executor), plan.state, call)

        def gradients(plan: Any = plan) -> None:
            call = GradientCall(
                A, None, C, B, D, G, E, logs, None, of_C, of_B, of_D, alpha, "softmax"
            )
            plan.algorithm.gradients(CupyAdapter(executor), plan.state, call)

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

    def cell(kernel: str, what: str) -> str:
        return f"{np.median(times[kernel, what]):.1f}" if (kernel, what) in times else "-"

    cells = " | ".join(
        " / ".join(cell(kernel, what) for kernel in KERNELS) for what in ("product", "gradients")
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
