"""Multigrid beside hypre and PyAMG: ``python -m wollemi_bench.multigrid_table > table.md``.

hypre is that of PETSc, in a Python that has ``petsc4py`` (Debian: ``apt-get install
python3-petsc4py``), with the parts that also run on GPUs: PMIS, ext+i, Chebyshev. All solve by CG
to a true residual of 1e-8 with one right-hand side, which is drawn. Times are set-up and solve
together, in those of our CG with Jacobi in the same round: median, least and most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

import wollemi as wl

from . import petsc
from .cases import case
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


def faces(k: Sequence[np.ndarray]) -> sp.csr_array:
    """Return finite volumes on cells with conductivities by axis, fixed values at the boundary."""
    shape = k[0].shape
    number = np.arange(k[0].size).reshape(shape)
    diagonal, parts = np.zeros(shape), []
    for axis, along in enumerate(k):
        K, N, D = (np.moveaxis(a, axis, 0) for a in (along, number, diagonal))
        t = 2 * K[1:] * K[:-1] / (K[1:] + K[:-1])
        D[1:] += t
        D[:-1] += t
        D[0] += 2 * K[0]
        D[-1] += 2 * K[-1]
        parts.append(
            sp.coo_array((-t.ravel(), (N[1:].ravel(), N[:-1].ravel())), (number.size,) * 2)
        )
    lower = sum(parts[1:], parts[0]).tocsr()
    return sp.csr_array(lower + lower.T + sp.diags_array(diagonal.ravel()))


def cube(n: int, x: float = 1.0, y: float = 1.0, z: float = 1.0) -> sp.csr_array:
    """Return diffusion with one conductivity along each axis."""
    return faces([np.full((n, n, n), float(k)) for k in (x, y, z)])


def layers(n: int, contrast: float) -> sp.csr_array:
    """Return diffusion whose conductivity is drawn for each cell, log-uniform."""
    k = contrast ** np.random.default_rng(0).random((n, n, n))
    return faces([k, k, k])


def boxes(n: int, contrast: float) -> sp.csr_array:
    """Return diffusion with sixty boxes that conduct well or badly."""
    rng, k = np.random.default_rng(0), np.ones((n, n, n))
    for _ in range(60):
        a, s = rng.integers(0, n, 3), rng.integers(2, n // 4, 3)
        inside = tuple(slice(first, first + length) for first, length in zip(a, s, strict=True))
        k[inside] = contrast if rng.random() < 0.5 else contrast**-0.5
    return faces([k, k, k])


def rotated(n: int, weak: float) -> sp.csr_array:
    """Return bilinear elements of a diffusion that is weak along a direction of 30 degrees."""
    from pyamg.gallery import diffusion_stencil_2d, stencil_grid

    stencil = diffusion_stencil_2d(epsilon=weak, theta=np.pi / 6, type="FE")
    return sp.csr_array(stencil_grid(stencil, (n, n)).tocsr())


#: The systems by name; n is what a scale divides.
SYSTEMS: dict[str, tuple[Callable[[int], sp.csr_array], int]] = {
    "diffusion 32^3": (cube, 32),
    "diffusion 64^3": (cube, 64),
    "diffusion 100^3": (cube, 100),
    "anisotropic 1e-3, 64^3": (lambda n: cube(n, z=1e-3), 64),
    "layers 1e6, 64^3": (lambda n: layers(n, 1e6), 64),
    "boxes 1e6, 64^3": (lambda n: boxes(n, 1e6), 64),
    "27 points, 64^3": (lambda n: case(f"stencil27:{n}").matrix(), 64),
    "rotated 1e-3, 400^2": (lambda n: rotated(n, 1e-3), 400),
}

#: What is known of one library and one system.
Row = dict[str, Any]


def _ours(S: sp.csr_array, b: np.ndarray, executor: str, **options: Any) -> Row:
    A = wl.Csr(S, executor=executor)
    began = time.perf_counter()
    M = wl.preconditioners.Amg(A, dtype="float32", **options)
    result = wl.solvers.Cg(A, M, rtol=RTOL, maxiter=2000).solve(b)
    seconds = time.perf_counter() - began
    complexity = M.report().operator_complexity
    return {"iterations": result.iterations, "seconds": seconds, "complexity": complexity}


def _jacobi(S: sp.csr_array, b: np.ndarray, executor: str) -> Row:
    A = wl.Csr(S, executor=executor)
    began = time.perf_counter()
    result = wl.solvers.Cg(A, M="jacobi", rtol=RTOL, maxiter=20000).solve(b)
    return {"iterations": result.iterations, "seconds": time.perf_counter() - began}


def _pyamg(S: sp.csr_array, b: np.ndarray) -> Row:
    import pyamg

    A, count = sp.csr_matrix(S), [0]
    began = time.perf_counter()
    levels = pyamg.ruge_stuben_solver(A)

    def tick(_: Any) -> None:
        count[0] += 1

    levels.solve(b, tol=RTOL, accel="cg", maxiter=200, callback=tick)
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


def measured(S: sp.csr_array, rounds: int, executor: str) -> dict[str, Row]:
    """Return what each library takes: the last iterations, and times in those of CG with Jacobi."""
    b = np.random.default_rng(SEED).standard_normal(S.shape[0])
    b /= np.linalg.norm(b)
    libraries: dict[str, Callable[[], Row]] = {
        "Jacobi": lambda: _jacobi(S, b, executor),
        "Amg": lambda: _ours(S, b, executor),
        "Amg, aggressive": lambda: _ours(S, b, executor, aggressive=1),
        "PyAMG": lambda: _pyamg(S, b),
    }
    if petsc.is_here():
        libraries["hypre"] = lambda: _hypre(S, b)
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
    only: Annotated[list[str] | None, typer.Option(help="Systems whose name has this.")] = None,
) -> None:
    """Print the table."""
    print("| | CG + Jacobi | `Amg` | `Amg`, aggressive=1 | PyAMG (Ruge-Stuben) | hypre |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (make, n) in SYSTEMS.items():
        if only and not any(word in name for word in only):
            continue
        found = measured(make(max(n // scale, 8)), rounds, executor)
        cells = [found.get(k) for k in ("Amg", "Amg, aggressive", "PyAMG", "hypre")]
        jacobi = f"{found['Jacobi']['iterations']}, {found['Jacobi']['seconds']:.2g} s"
        print(f"| {name} | {jacobi} " + "".join(map(_cell, cells)) + "|", flush=True)


if __name__ == "__main__":
    typer.run(main)
