"""CG with IC(0) compared with PETSc: ``python -m wollemi_bench.cholesky_table > table.md``.

PETSc is that of a Python that has ``petsc4py`` (Debian: ``apt-get install python3-petsc4py``), on
one thread. Both solve to a true residual of 1e-8 with one drawn right-hand side. Every round runs
PETSc, then wollemi on each executor; the table has the median of PETSc's time by wollemi's (least
and most): above 1 wollemi is faster. The second number of a cell is set-up and solve together.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import typer

import wollemi as wl

from .elliptic import SCALAR
from .generators import SEED
from .multigrid_table import RTOL
from .petsc import Taken, cg


def _ours(S: Any, b: np.ndarray, executor: str) -> Taken:
    A = wl.Csr(S, executor=executor)
    times = [time.perf_counter()]
    M = wl.preconditioners.Ic(A)
    times.append(time.perf_counter())
    result = wl.solvers.Cg(A, M, rtol=RTOL, maxiter=5000).solve(b)
    times.append(time.perf_counter())
    return Taken(result.iterations, times[1] - times[0], times[2] - times[1], result.x)


def measured(S: Any, rounds: int, executors: list[str]) -> list[list[Taken]]:
    """Return the times of PETSc and each executor, by rounds."""
    b = np.random.default_rng(SEED).standard_normal(S.shape[0])
    b /= np.linalg.norm(b)
    return [
        [cg(S, b, {"pc_type": "icc"}, RTOL), *(_ours(S, b, e) for e in executors)]
        for _ in range(rounds)
    ]


def _cell(theirs: np.ndarray, ours: np.ndarray) -> str:
    parts = []
    for t, o in ((theirs[:, 2], ours[:, 2]), (theirs[:, 1:].sum(1), ours[:, 1:].sum(1))):
        least, middle, most = np.percentile(t / o, (0, 50, 100))
        parts.append(f"{middle:.2f} ({least:.2f} to {most:.2f})")
    return f"{int(ours[-1, 0])}, {', '.join(parts)}"


def main(
    executors: Annotated[list[str] | None, typer.Option(help="Where ours runs.")] = None,
    rounds: Annotated[int, typer.Option(help="Times that each is done.", min=1)] = 5,
    scale: Annotated[int, typer.Option(help="Divide the points of an axis by this.", min=1)] = 1,
    only: Annotated[list[str] | None, typer.Option(help="Systems with this in their name.")] = None,
) -> None:
    """Print the table."""
    places = executors or ["omp:1", "omp:2"]
    wl.solvers.Cg(wl.Csr(np.eye(4), executor=places[0]), M="ic").solve(np.ones(4))  # loads code
    print("| | PETSc: iterations, set-up, solve |", " | ".join(places), "|")
    print("| --- |", " | ".join(["---"] * (1 + len(places))), "|")
    for name, system in SCALAR.items():
        if only and not any(word in name for word in only):
            continue
        found = np.array(measured(system.problem(scale).matrix, rounds, places))
        count, setup, solve = np.median(found[:, 0], axis=0)
        cells = [_cell(found[:, 0], found[:, i]) for i in range(1, found.shape[1])]
        theirs = f"{int(count)}, {1e3 * setup:.0f} ms, {1e3 * solve:.0f} ms"
        print(f"| {name} | {theirs} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    typer.run(main)
