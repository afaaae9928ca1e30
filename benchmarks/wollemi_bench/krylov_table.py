"""Times of Krylov methods and of SciPy's or cupyx's: ``python -m wollemi_bench.krylov_table omp``.

The unit is a product with ``A`` (or its transpose) and a method's other work for it, because
libraries count iterations differently. It is the difference between a long solve and a short one,
divided by the products in between. Methods of both libraries take turns; the table has medians over
rounds with the least and the most of the ratio. A second table has the time of iterative refinement
around CG in float32 and of CG in float64, to a residual of 1e-12; a third LOBPCG.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

import wollemi as wl

from .cases import case
from .generators import SEED

#: Our methods, how many products an iteration has, and options.
OURS: dict[str, tuple[str, float, dict[str, Any]]] = {
    "Cg": ("Cg", 1, {}),
    "Fcg": ("Fcg", 1, {}),
    "PipeCg": ("PipeCg", 1, {}),
    "Minres": ("Minres", 1, {}),
    "Chebyshev": ("Chebyshev", 1, {"bounds": (0.5, 12.0)}),
    "Bicgstab": ("Bicgstab", 2, {}),
    "Cgs": ("Cgs", 2, {}),
    "Tfqmr": ("Tfqmr", 2, {}),
    "Bicg": ("Bicg", 2, {}),
    "Qmr": ("Qmr", 2, {}),
    "Idr(4)": ("Idr", 5, {"s": 4}),
    "Gmres(30)": ("Gmres", 1, {"restart": 30}),
    "Gmres(30), basis in float32": ("Gmres", 1, {"restart": 30, "basis": "float32"}),
    "Gmres(30), basis in float16": ("Gmres", 1, {"restart": 30, "basis": "float16"}),
    "Fgmres(30)": ("Fgmres", 1, {"restart": 30}),
    "Lgmres(30)": ("Lgmres", 1, {"restart": 30}),
    "Gcrotmk(20)": ("Gcrotmk", 1, {"restart": 20}),
}

#: The methods of SciPy, with options; iterations of restarted methods are cycles.
SCIPYS: dict[str, tuple[str, dict[str, Any]]] = {
    "Cg": ("cg", {}),
    "Minres": ("minres", {}),
    "Bicgstab": ("bicgstab", {}),
    "Cgs": ("cgs", {}),
    "Tfqmr": ("tfqmr", {}),
    "Bicg": ("bicg", {}),
    "Qmr": ("qmr", {}),
    "Gmres(30)": ("gmres", {"restart": 30}),
    "Lgmres(30)": ("lgmres", {"inner_m": 30}),
    "Gcrotmk(20)": ("gcrotmk", {}),
}

#: Products of a cycle of the methods with cycles as iterations.
CYCLES = {"gmres": 30, "lgmres": 33, "gcrotmk": 40}

#: The methods of cupyx.
CUPYXS = ("Cg", "Cgs", "Minres", "Gmres(30)")


class _Counted:
    """A matrix of another library that counts its products."""

    def __init__(self, A: Any, operator: Callable[..., Any]) -> None:
        self.count = 0
        T = A.T.tocsr()

        def product(matrix: Any) -> Callable[[Any], Any]:
            def multiply(x: Any) -> Any:
                self.count += 1
                return matrix @ x

            return multiply

        self.operator = operator(A.shape, matvec=product(A), rmatvec=product(T), dtype=A.dtype)


def _seconds(solve: Callable[[int], float], lengths: tuple[int, int]) -> float:
    """Return the time of a product; ``solve`` returns how many a solve of a length had."""
    times, products = [], []
    for length in lengths:
        start = time.perf_counter()
        products.append(solve(length))
        times.append(time.perf_counter() - start)
    return (times[1] - times[0]) / max(1.0, products[1] - products[0])


def our_solve(A: Any, b: Any, name: str) -> Callable[[int], float]:
    """Return a function that does this number of iterations and returns the number of products."""
    method, products, options = OURS[name]
    made: dict[int, Any] = {}

    def solve(length: int) -> float:
        count = max(1, round(length / products))
        if count not in made:
            solver = getattr(wl.solvers, method)
            made[count] = solver(A, rtol=1e-300, maxiter=count, **options)
            made[count].solve(b)
        done = made[count].solve(b)
        A.executor.synchronize()
        return done.iterations * products

    return solve


def their_solve(library: Any, linalg: Any, A: Any, b: Any, name: str) -> Callable[[int], float]:
    """Return a function that does products of another library's method and counts them."""
    method, options = SCIPYS[name]
    counted, function = _Counted(A, linalg.LinearOperator), getattr(linalg, method)
    known = inspect.signature(function).parameters
    tolerance = {"rtol" if "rtol" in known else "tol": 1e-300 if method == "minres" else 0.0}

    def solve(length: int) -> float:
        counted.count = 0
        each = CYCLES.get(method, 2 if method in ("bicg", "qmr", "bicgstab", "cgs") else 1)
        count = max(1, round(length / each))
        if library.__name__ == "cupy" and method == "gmres":
            count = length  # it counts iterations
        with np.errstate(all="ignore"):
            function(counted.operator, b, maxiter=count, **options, **tolerance)
        if library.__name__ == "cupy":
            library.cuda.get_current_stream().synchronize()
        return float(counted.count)

    return solve


def methods(on: Any, S: sp.csr_array, rounds: int, lengths: tuple[int, int]) -> Iterator[str]:
    """Yield the rows of the first table."""
    A, b, theirs = wl.Csr(S, executor=on), np.random.default_rng(SEED).random(S.shape[0]), {}
    library, linalg, T, c = _library(on, S, b)
    for name in SCIPYS:
        if library is np or name in CUPYXS:
            theirs[name] = their_solve(library, linalg, T, c, name)
    first = 0.0
    for name in OURS:
        ours, ratios, times = our_solve(A, c, name), [], []
        for turn in range(rounds + 1):
            own = _seconds(ours, lengths)
            other = _seconds(theirs[name], lengths) if name in theirs else float("nan")
            if turn:
                times.append((own, other))
                ratios.append(other / own)
        own, other = np.median(times, axis=0) * 1e6
        first = first or own
        beside = (
            f"{other:.1f} | {np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            if name in theirs
            else " | "
        )
        each = OURS[name][1]
        yield f"| {name} | {each} | {own:.1f} | {own * each / first:.2f} | {beside} |"


def _library(on: Any, S: sp.csr_array, b: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Return the other library, its solvers, and the system there."""
    if not on.name.startswith("cuda"):
        import scipy.sparse.linalg as linalg

        return np, linalg, S, b
    import cupy
    import cupyx.scipy.sparse as csp
    import cupyx.scipy.sparse.linalg as cupyx_linalg

    return cupy, cupyx_linalg, csp.csr_matrix(sp.csr_matrix(S)), cupy.asarray(b)


def refinement(on: Any, S: sp.csr_array, rounds: int) -> str:
    """Return a row: CG to 1e-12, and refinement around CG in float32."""
    A, b = wl.Csr(S, executor=on), np.random.default_rng(SEED).random(S.shape[0])
    c = _library(on, S, b)[3]
    without_matrix: Any = wl.solvers.Cg
    inner = without_matrix(rtol=1e-4, dtype="float32", maxiter=5000)
    double = wl.solvers.Cg(A, rtol=1e-12, maxiter=5000)
    single = wl.solvers.Ir(A, inner=inner, rtol=1e-12)
    times: list[list[float]] = []
    for turn in range(rounds + 1):
        row = []
        for solver in (double, single):
            start = time.perf_counter()
            found = solver.solve(c)
            A.executor.synchronize()
            row.append(time.perf_counter() - start)
            if not found.converged:
                return f"{type(solver).__name__} did not converge: {found.reason}"
        if turn:
            times.append(row)
    ratios = [b / a for a, b in times]
    middle = np.median(times, axis=0) * 1e3
    spread = f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return f"{middle[0]:.1f} | {middle[1]:.1f} | {spread}"


def lobpcg(on: Any, S: sp.csr_array, columns: int, rounds: int) -> str:
    """Return a row: an iteration of LOBPCG with ``columns`` vectors in both libraries."""
    A = wl.Csr(S, executor=on)
    X = np.random.default_rng(SEED).standard_normal((S.shape[0], columns))
    library, linalg, T, _ = _library(on, S, X[:, 0])
    there = library.asarray(X)
    counted = 0

    def product(x: Any) -> Any:
        nonlocal counted
        counted += 1
        return T @ x

    operator = linalg.LinearOperator(S.shape, matvec=product, matmat=product, dtype=S.dtype)
    few, many = 5, 25

    def ours(count: int) -> float:
        return float(wl.solvers.Lobpcg(A, rtol=1e-14, maxiter=count).solve(there).iterations)

    def theirs(count: int) -> float:
        nonlocal counted
        counted = 0
        linalg.lobpcg(operator, there.copy(), largest=False, tol=1e-14, maxiter=count)
        return float(counted)

    times = []
    for turn in range(rounds + 1):
        row = [_seconds(ours, (few, many)), _seconds(theirs, (few, many))]
        if turn:
            times.append(row)
    ratios = [b / a for a, b in times]
    middle = np.median(times, axis=0) * 1e3
    spread = f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return f"{middle[0]:.2f} | {middle[1]:.2f} | {spread}"


def main(
    executor: str,
    sizes: Annotated[str, typer.Option(help="of 7-point stencils, with commas")] = "100",
    rounds: int = 5,
    few: int = 60,
    many: int = 180,
    eigen: Annotated[int, typer.Option(help="vectors of LOBPCG, 0 for none")] = 16,
) -> None:
    """Print the tables."""
    import warnings

    warnings.simplefilter("ignore")
    on = wl.executor(executor)
    systems = {size: case(f"stencil7:{size}").matrix() for size in map(int, sizes.split(","))}
    other = "cupyx" if on.name.startswith("cuda") else "SciPy"
    for size, S in systems.items():
        print(f"\n## {size}^3, float64\n")
        print(
            "| method | products an iteration | us a product | iteration, Cg = 1 "
            f"| {other} | times as fast |"
        )
        print("|---|---:|---:|---:|---:|---|")
        for row in methods(on, S, rounds, (few, many)):
            print(row, flush=True)
    print("\n## To 1e-12\n\n| grid | Cg, ms | Ir around Cg in float32, ms | ratio |")
    print("|---|---:|---:|---|")
    for size, S in systems.items():
        print(f"| {size}^3 | {refinement(on, S, rounds)} |", flush=True)
    if eigen:
        print(
            f"\n## LOBPCG, {eigen} vectors\n\n| grid | ms an iteration | {other} | times as fast |"
        )
        print("|---|---:|---:|---|")
        for size, S in systems.items():
            print(f"| {size}^3 | {lobpcg(on, S, eigen, rounds)} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
