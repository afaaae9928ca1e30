"""Applications of preconditioners and their products: ``python -m ... WHERE``.

An approximate inverse is applied by the products with its parts, and triangles of incomplete
factors that are solved by sweeps take a product a sweep each. Applications, and the same products
one after the other, are timed by turns; the part above 1 is passes over vectors.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import typer

import wollemi as wl

from .cases import case

CASES = ("stencil7:64", "stencil7:100", "stencil27:50", "uniform:200000,200000,2000000")
#: Calls of a batch.
CALLS = 10


def preconditioners(A: Any) -> Iterator[tuple[str, Any, list[Any]]]:
    """Yield preconditioners with the matrices that an application multiplies with."""
    made: Any = wl.preconditioners.Isai(A)
    yield "Isai", made, [made.inverse]
    made = wl.preconditioners.Fsai(A)
    yield "Fsai", made, [made.factor, made.adjoint]
    made = wl.preconditioners.Ilu(A, apply="isai")
    yield "Ilu, isai", made, [*made.inverses]
    made = wl.preconditioners.Ilu(A, apply="jacobi:3")
    yield "Ilu, 3 sweeps", made, [made.lower, made.upper] * made.applied[1]


def batch(call: Callable[[], Any], executor: Any) -> float:
    """Return the seconds of a call, from a batch of them."""
    executor.synchronize()
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    executor.synchronize()
    return (time.perf_counter() - began) / CALLS


def compared(M: Any, parts: list[Any], x: Any, rounds: int) -> str:
    """Return the times of an application and of its products, and their ratio."""
    executor = M.executor
    y, z = executor.copy(x), executor.copy(x)

    def application() -> None:
        M.apply(x, out=y)

    def products() -> None:
        for part in parts:
            part.apply(x, out=z)

    calls = (application, products)
    for call in calls:
        batch(call, executor)
    turns = [[batch(call, executor) for call in calls] for _ in range(rounds)]
    ours, theirs = (statistics.median(t[i] for t in turns) * 1e6 for i in (0, 1))
    low, middle, high = statistics.quantiles((a / b for a, b in turns), n=4)
    return f"{ours:.0f} | {theirs:.0f} | {middle:.2f} ({low:.2f} to {high:.2f})"


def main(
    where: Annotated[str, typer.Argument(help="cuda, omp:2")],
    rounds: int = 15,
) -> None:
    """Print a row for each matrix and preconditioner."""
    print("| matrix | M | application, us | its products, us | ratio (quartiles) |")
    print("| --- | --- | --- | --- | --- |")
    for name in CASES:
        S = case(name).matrix()
        if name.startswith("uniform"):  # a symmetric pattern with a large diagonal
            S = (S + S.T).tocsr()
            S.setdiag(abs(S).sum(axis=1) + 1)
        A = wl.Csr(S, executor=where)
        x = A.executor.from_host(np.random.default_rng(1).standard_normal(A.shape[0]))
        for label, M, parts in preconditioners(A):
            print(f"| {name} | {label} | {compared(M, parts, x, rounds)} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
