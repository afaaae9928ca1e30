"""Multigrid compared with hypre and PyAMG: ``python -m wollemi_bench.multigrid_table > table.md``.

hypre is that of PETSc, in a Python that has ``petsc4py`` (Debian: ``apt-get install
python3-petsc4py``), with the parts that also run on GPUs: PMIS, ext+i, Chebyshev; it solves
the symmetric systems with one unknown a node. All solve to a residual of 1e-8 with one right-hand
side, which is drawn: symmetric systems by CG, others by the method of the row. Times are set-up and
solve together, relative to wollemi's method with Jacobi in the same round: median, least and most.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

import wollemi as wl

from . import petsc
from .elliptic import LARGE, SCALAR, SYSTEMS, Problem
from .generators import SEED

#: The residual that ends a solve.
RTOL = 1e-8

#: BoomerAMG with the parts that GPUs have too.
_BOOMERAMG = {
    "pc_type": "hypre",
    "pc_hypre_type": "boomeramg",
    "pc_hypre_boomeramg_coarsen_type": "PMIS",
    "pc_hypre_boomeramg_interp_type": "ext+i",
    "pc_hypre_boomeramg_relax_type_all": "Chebyshev",
}


#: The results of one library for one system.
Row = dict[str, Any]


#: PyAMG's names of wollemi's methods.
_PYAMG_NAMES = {"Cg": "cg", "Bicgstab": "bicgstab", "Fgmres": "fgmres"}


def _ours(of: Problem, solver: str, b: np.ndarray, executor: str, **options: Any) -> Row:
    A = wl.Csr(of.matrix, executor=executor)
    began = time.perf_counter()
    M = wl.preconditioners.Amg(A, dtype="float32", near_null=of.modes, **options)
    result = getattr(wl.solvers, solver)(A, M, rtol=RTOL, maxiter=2000).solve(b)
    seconds = time.perf_counter() - began
    complexity = M.report().operator_complexity
    return {"iterations": result.iterations, "seconds": seconds, "complexity": complexity}


def _jacobi(of: Problem, solver: str, b: np.ndarray, executor: str) -> Row:
    A = wl.Csr(of.matrix, executor=executor)
    began = time.perf_counter()
    result = getattr(wl.solvers, solver)(A, M="jacobi", rtol=RTOL, maxiter=20000).solve(b)
    return {"iterations": result.iterations, "seconds": time.perf_counter() - began}


def _pyamg(of: Problem, solver: str, b: np.ndarray) -> Row:
    import pyamg

    A, count = sp.csr_matrix(of.matrix), [0]
    began = time.perf_counter()
    levels = (
        pyamg.ruge_stuben_solver(A)
        if of.modes is None
        else pyamg.smoothed_aggregation_solver(A.tobsr((3, 3)), B=of.modes)
    )

    def tick(_: Any) -> None:
        count[0] += 1

    levels.solve(b, tol=RTOL, accel=_PYAMG_NAMES[solver], maxiter=200, callback=tick)
    seconds = time.perf_counter() - began
    return {
        "iterations": count[0],
        "seconds": seconds,
        "complexity": levels.operator_complexity(),
    }


def _hypre(S: sp.csr_array, b: np.ndarray) -> Row:
    options = {**_BOOMERAMG, "pc_hypre_boomeramg_strong_threshold": "0.5"}
    taken = petsc.cg(S, b, options, RTOL)
    return {"iterations": taken.iterations, "seconds": taken.setup + taken.solve}


def measured(
    of: Problem, solver: str, rounds: int, executor: str, *, hypre: bool
) -> dict[str, Row]:
    """Return the result of each library: the last iterations, and times relative to Jacobi."""
    b = np.random.default_rng(SEED).standard_normal(of.matrix.shape[0])
    b /= np.linalg.norm(b)
    libraries: dict[str, Callable[[], Row]] = {
        "Jacobi": lambda: _jacobi(of, solver, b, executor),
        "Amg": lambda: _ours(of, solver, b, executor),
        "PyAMG": lambda: _pyamg(of, solver, b),
    }
    if of.modes is None:
        libraries["Amg, aggressive"] = lambda: _ours(of, solver, b, executor, aggressive=1)
    if hypre and petsc.is_here():
        libraries["hypre"] = lambda: _hypre(of.matrix, b)
    found: dict[str, Row] = {}
    for _ in range(rounds):
        held = {name: call() for name, call in libraries.items()}
        for name, row in held.items():
            known = found.setdefault(name, {"times": []})
            known.update(row)
            known["times"].append(row["seconds"] / held["Jacobi"]["seconds"])
    return found


def _cell(row: Row | None) -> str:
    if row is None:
        return "|"
    complexity = f" ({row['complexity']:.1f})" if "complexity" in row else ""
    least, middle, most = np.percentile(row["times"], (0, 50, 100))
    return f"| {row['iterations']}{complexity}, {middle:.2g} ({least:.2g} to {most:.2g}) "


def main(
    executor: Annotated[str, typer.Option(help="Where ours runs.")] = "omp",
    rounds: Annotated[int, typer.Option(help="Times that each is set up and solved.", min=1)] = 3,
    scale: Annotated[int, typer.Option(help="Divide the points of an axis by this.", min=1)] = 1,
    only: Annotated[list[str] | None, typer.Option(help="Systems with this in their name.")] = None,
) -> None:
    """Print the table."""
    print("| | Jacobi | `Amg` | `Amg`, aggressive=1 | PyAMG | hypre |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, system in {**SYSTEMS, **LARGE}.items():
        if not any(word in name for word in only or SYSTEMS):
            continue
        of = system.problem(scale)
        found = measured(of, system.solver, rounds, executor, hypre=name in SCALAR)
        cells = [found.get(k) for k in ("Amg", "Amg, aggressive", "PyAMG", "hypre")]
        jacobi = f"{found['Jacobi']['iterations']}, {found['Jacobi']['seconds']:.2g} s"
        print(f"| {name} | {jacobi} " + "".join(map(_cell, cells)) + "|", flush=True)


if __name__ == "__main__":
    typer.run(main)
