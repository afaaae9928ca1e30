"""Multigrid on a GPU: ``python -m wollemi_bench.cycle_table``.

For cubes of diffusion, and of boxes of contrast 1e6: the time of set-up, the first and a later one,
of new values, of a cycle, and of a solve by conjugate gradients to 1e-8. The time of a cycle is the
part of an iteration that ``Amg`` adds, between solves of two lengths. For comparison the same
hierarchy is driven from CuPy, product by product, and the products ``P^T A P`` of the finest level
use cuSPARSE. The table is Markdown, in milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

import wollemi as wl

from .elliptic import boxes, cube

RTOL = 1e-8
LENGTHS = (20, 60)


def _median(call: Callable[[], Any], synchronize: Callable[[], None], rounds: int) -> float:
    """Return the milliseconds of a call."""
    times = []
    for _ in range(rounds):
        synchronize()
        began = time.perf_counter()
        call()
        synchronize()
        times.append(time.perf_counter() - began)
    return 1e3 * float(np.median(times))


def _iteration(A: Any, b: Any, M: Any, rounds: int) -> float:
    """Return the milliseconds of an iteration of conjugate gradients."""
    wait = A.executor.synchronize
    solvers = [wl.solvers.Cg(A, M, rtol=1e-300, maxiter=length) for length in LENGTHS]
    for solver in solvers:
        solver.solve(b)
    taken = [_median(partial(solver.solve, b), wait, rounds) for solver in solvers]
    return (taken[1] - taken[0]) / (LENGTHS[1] - LENGTHS[0])


class _Driven:
    """A V-cycle of the same levels, each product a call of CuPy's."""

    def __init__(self, M: Any) -> None:
        import cupyx.scipy.sparse as cs

        def theirs(A: Any) -> Any:
            A = A.asformat("csr")
            return cs.csr_matrix((A.data, A.indices, A.indptr), shape=A.shape)

        self.levels = [
            (*(theirs(part) for part in (level.A, level.P, level.R)),
             level.before.M.inverse.data, level.before.M.steps)
            for level in M.levels
        ]  # fmt: skip
        self.inverse = M.coarsest.data

    def apply(self, b: Any, at: int = 0) -> Any:
        """Return the result of a cycle from 0 for ``b``."""
        if at == len(self.levels):
            return self.inverse @ b
        A, P, R, inverse, steps = self.levels[at]
        x = self._smooth(A, inverse, steps, b, None)
        x = x + P @ self.apply(R @ (b - A @ x), at + 1)
        return self._smooth(A, inverse, steps, b, x)

    @staticmethod
    def _smooth(A: Any, inverse: Any, steps: Any, b: Any, x: Any) -> Any:
        d = None
        for last, following in steps:
            r = b if x is None else b - A @ x
            d = following * inverse * r if d is None else last * d + following * inverse * r
            x = d if x is None else x + d
        return x


def _row(name: str, S: Any, executor: str, rounds: int, options: dict[str, Any]) -> str:
    A = wl.Csr(S, executor=executor)
    on, wait = A.executor, A.executor.synchronize
    rng = np.random.default_rng(0)
    b = on.from_host(rng.standard_normal(S.shape[0]))

    def make() -> Any:
        return wl.preconditioners.Amg(A, **options)

    first = _median(make, wait, 1)
    setup = _median(make, wait, rounds)
    M = make()
    M.update(A)
    update = _median(lambda: M.update(A), wait, rounds)
    alone, both = (_iteration(A, b, preconditioner, rounds) for preconditioner in (None, M))
    solver = wl.solvers.Cg(A, M, rtol=RTOL)
    result = solver.solve(b)
    solve = _median(lambda: solver.solve(b), wait, rounds)
    jacobi = wl.solvers.Cg(A, "jacobi", rtol=RTOL, maxiter=20000)
    jacobi.solve(b)
    beside = _median(lambda: jacobi.solve(b), wait, 1)
    beside_cupy = "cuda" in on.name and options["dtype"] in ("float32", "float64")
    driven = _driven(M, on, b, wait, rounds) if beside_cupy else ""
    products = _products(M, wait, rounds) if beside_cupy else ""
    report = M.report()
    return (
        f"| {name} | {len(report.rows)}, {report.operator_complexity:.2f} | {first:.0f} / "
        f"{setup:.1f} | {update:.1f} | {both - alone:.3f} | {driven} | {result.iterations}, "
        f"{solve:.2f} | {beside:.1f} | {products} |"
    )


def _driven(M: Any, on: Any, b: Any, wait: Callable[[], None], rounds: int) -> str:
    theirs = _Driven(M)
    narrow = b.astype(M.levels[0].A.dtype)
    have, want = theirs.apply(narrow), on.to_host(M @ b)
    error = np.linalg.norm(on.to_host(have) - want) / np.linalg.norm(want)
    taken = _median(lambda: theirs.apply(narrow), wait, rounds)
    return f"{taken:.2f} ({error:.0e})"


def _products(M: Any, wait: Callable[[], None], rounds: int) -> str:
    """Return milliseconds of ``P^T A P`` of the finest level, wollemi's and CuPy's."""
    P, A = (part.asformat("csr") for part in (M.levels[0].P, M.levels[0].A))
    wl.galerkin(P, A)
    ours = _median(lambda: wl.galerkin(P, A), wait, rounds)
    import cupyx.scipy.sparse as cs

    P, A = (cs.csr_matrix((x.data, x.indices, x.indptr), shape=x.shape) for x in (P, A))

    def theirs() -> Any:
        return P.T.tocsr() @ (A @ P)

    theirs()
    return f"{ours:.2f} / {_median(theirs, wait, rounds):.2f}"


def main(
    executor: Annotated[str, typer.Argument(help="Where it runs.")] = "cuda",
    sizes: Annotated[str, typer.Option(help="Points of the axes of cubes.")] = "32,64,100,128,200",
    rounds: Annotated[int, typer.Option(help="Times of each call, of which the median is.")] = 7,
    aggressive: Annotated[int, typer.Option(help="Levels that are coarsened twice.")] = 0,
    dtype: Annotated[str, typer.Option(help="The precision of levels.")] = "float32",
) -> None:
    """Print the table."""
    options = {"dtype": dtype, "aggressive": aggressive}
    print(
        "| system | levels, complexity | set-up, first / later | update | cycle | cycle from CuPy "
        "(difference) | iterations, solve | CG + Jacobi | P^T A P, ours / cuSPARSE |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    for n in map(int, sizes.split(",")):
        print(_row(f"diffusion {n}^3", cube(n), executor, rounds, options), flush=True)
        if n in (64, 128):
            row = _row(f"boxes 1e6, {n}^3", boxes(n, 1e6), executor, rounds, options)
            print(row, flush=True)


if __name__ == "__main__":
    typer.run(main)
