"""Eigenpairs compared with SciPy's: ``python -m wollemi_bench.eigen_table FOLDER``.

Some smallest eigenvalues of symmetric positive definite matrices, by ARPACK around a factorization,
our Lanczos method around wollemi's, and LOBPCG of both with the same start and the same incomplete
Cholesky factorization as ``M``. LOBPCG ends where the norms of all residuals are at most 1e-8 times
the largest eigenvalue; SciPy's counts come from its history.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
import typer

import wollemi as wl

from .cases import case
from .generators import SEED

#: Matrices of the folder, and how many pairs are wanted of each.
NAMES = {"fv1": 6, "1138_bus": 6, "bcsstk13": 6, "poisson": 6}
#: Iterations at most.
LIMIT = 2000


def systems(folder: Path) -> Iterator[tuple[str, sp.csr_array, int]]:
    """Yield names, matrices and how many pairs are wanted."""
    for name, count in NAMES.items():
        if name == "poisson":
            yield "Poisson 50^3", case("stencil7:50").matrix(), count
        else:
            yield name, sp.csr_array(wl.read(folder / f"{name}.mtx.gz").to_scipy()), count


def counts(S: sp.csr_array, k: int) -> tuple[int | str, int | str]:
    """Return the iterations of LOBPCG with M, wollemi's and SciPy's, or why there are none."""
    A = wl.Csr(S)
    M = wl.preconditioners.Ic(A)
    X = np.random.default_rng(SEED).standard_normal((S.shape[0], k))
    top = float(spla.eigsh(S, 1, return_eigenvectors=False)[0])
    found = wl.solvers.Lobpcg(A, M=M, rtol=0.0, atol=1e-8 * top, maxiter=LIMIT).solve(X)
    ours: int | str = found.iterations if found.converged else str(found.reason)
    precondition = spla.LinearOperator(
        S.shape, matvec=lambda x: M @ x, matmat=lambda x: M @ x, dtype=S.dtype
    )
    history: list[Any]
    _, _, history = spla.lobpcg(
        S,
        X.copy(),
        M=precondition,
        largest=False,
        tol=1e-8 * top,
        maxiter=LIMIT,
        retResidualNormsHistory=True,
    )
    norms = [float(np.max(norm)) for norm in history]
    reached = [at for at, norm in enumerate(norms) if norm <= 1e-8 * top]
    return ours, reached[0] if reached else f"{min(norms) / top:.1e} after {len(norms) - 1}"


def differences(S: sp.csr_array, k: int) -> tuple[float, float]:
    """Return how far our Lanczos and ARPACK are apart, relative, and our residuals."""
    theirs = np.sort(spla.eigsh(sp.csc_matrix(S), k, sigma=0.0, tol=0.0)[0])
    found = wl.solvers.Lanczos(wl.Csr(S), k=k, sigma=0.0).solve()
    ours = np.sort(np.asarray(found.eigenvalues))
    residual = np.max(found.residual_norms / np.abs(found.eigenvalues))
    return float(np.max(np.abs(ours - theirs) / np.abs(theirs))), float(residual)


def main(folder: str) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| matrix | pairs | Lanczos, ARPACK | residuals | LOBPCG, wollemi's | SciPy's |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, S, k in systems(Path(folder)):
        apart, residual = differences(S, k)
        ours, theirs = counts(S, k)
        print(f"| {name} | {k} | {apart:.1e} | {residual:.1e} | {ours} | {theirs} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
