"""Whole solves of Poisson's equation by wollemi, SciPy and PyAMG on a CPU: the table of the README.

``python -m wollemi_bench.first_table`` prints the table in Markdown. Each entry is the median of
several runs in seconds, set-up included. The runs of all libraries are interleaved.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyamg
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import wollemi as wl

RTOL = 1e-8

#: A run that takes longer is not repeated.
ONCE_ABOVE = 10.0


@dataclass(frozen=True)
class Entry:
    """The times of one library on one system, and the largest true residual over ``norm(b)``."""

    seconds: float
    residual: float


def poisson(*sizes: int) -> sp.csr_array:
    """Return the finite-difference Laplacian of a grid."""
    lines = [sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)) for n in sizes]
    A: Any = lines[0]
    for line in lines[1:]:
        A = sp.kronsum(A, line)
    return sp.csr_array(A)


def contenders(S: sp.csr_array, b: np.ndarray) -> dict[str, Callable[[], np.ndarray]]:
    """Return the ways to solve the system, by the heading of their column."""
    inverse = sp.diags_array(1 / S.diagonal())

    def matrix() -> Any:
        return wl.Csr(S)

    return {
        "`wl.solve`": lambda: wl.solve(matrix(), b, rtol=RTOL).x,
        '`wl.solve(M="amg")`': lambda: wl.solve(matrix(), b, method="cg", M="amg", rtol=RTOL).x,
        "SciPy `cg` + Jacobi": lambda: spla.cg(S, b, rtol=RTOL, M=inverse)[0],
        "SciPy `spsolve`": lambda: spla.spsolve(S.tocsc(), b),
        "PyAMG RS + CG": lambda: pyamg.ruge_stuben_solver(S).solve(b, tol=RTOL, accel="cg"),
        "PyAMG SA + CG": lambda: pyamg.smoothed_aggregation_solver(S).solve(
            b, tol=RTOL, accel="cg"
        ),
    }


def measure(S: sp.csr_array, b: np.ndarray, runs: int) -> dict[str, Entry]:
    """Time all contenders in turn."""
    times: dict[str, list[float]] = {}
    residuals: dict[str, float] = {}
    for _ in range(runs):
        for name, solve in contenders(S, b).items():
            if times.get(name) and times[name][0] > ONCE_ABOVE:
                continue
            start = time.perf_counter()
            x = solve()
            times.setdefault(name, []).append(time.perf_counter() - start)
            relative = float(np.linalg.norm(b - S @ x) / np.linalg.norm(b))
            residuals[name] = max(residuals.get(name, 0.0), relative)
    return {name: Entry(statistics.median(t), residuals[name]) for name, t in times.items()}


def main() -> None:
    """Print the table of the systems of the README."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    systems = {
        "2-D Poisson, 300 x 300": poisson(300, 300),
        "3-D Poisson, 50^3": poisson(50, 50, 50),
    }
    warm = poisson(20, 20)
    measure(warm, np.ones(warm.shape[0]), 1)
    heading: list[str] = []
    for name, S in systems.items():
        entries = measure(S, np.ones(S.shape[0]), runs)
        if not heading:
            heading = ["seconds, set-up included", *entries]
            print("| " + " | ".join(heading) + " |")
            print("| --- " + "| ---: " * len(entries) + "|")
        cells = [f"{entry.seconds:.2f}" for entry in entries.values()]
        print("| " + " | ".join([name, *cells]) + " |")
        worst = max(entries.items(), key=lambda item: item[1].residual)
        print(f"<!-- largest true residual / norm(b): {worst[1].residual:.1e} by {worst[0]} -->")


if __name__ == "__main__":
    main()
