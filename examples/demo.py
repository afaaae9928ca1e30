"""Heat in a plate of two materials: one real system, several solvers, a table and a picture.

    make demo                               or
    python examples/demo.py [cells] [executor]

The plate is heated from within and held at zero along its rim. It is made of two materials whose
conductivities differ by a factor of 100, which is what makes the system hard: 22,500 unknowns,
symmetric, positive definite. The matrix is made here by finite volumes.
"""

import sys

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

import wollemi as wl

RTOL = 1e-8


def conductivity(cells: int) -> np.ndarray:
    """Return a plate of conductivity 1 with round inclusions of 100."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[0 : 1 : cells * 1j, 0 : 1 : cells * 1j]
    k = np.ones((cells, cells))
    for cx, cy, radius in rng.uniform((0, 0, 0.02), (1, 1, 0.08), (60, 3)):
        k[(x - cx) ** 2 + (y - cy) ** 2 < radius**2] = 100.0
    return k


def heat_equation(k: np.ndarray) -> sp.csr_array:
    """Return -div(k grad u) on square cells, u = 0 around them.

    The conductance between two cells is the harmonic mean of theirs.
    """
    cells = k.shape[0]
    number = np.arange(k.size, dtype=np.int32).reshape(k.shape)
    pairs = [(np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])]
    i = np.concatenate([number[a].ravel() for a, b in pairs])
    j = np.concatenate([number[b].ravel() for a, b in pairs])
    g = np.concatenate([(2 * k[a] * k[b] / (k[a] + k[b])).ravel() for a, b in pairs])
    rim = np.zeros((cells, cells))
    for edge in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
        rim[edge] += 2 * k[edge]
    neighbours = sp.coo_array((g, (i, j)), shape=(k.size, k.size))
    neighbours = neighbours + neighbours.T
    return sp.csr_array(sp.diags_array(neighbours.sum(axis=1) + rim.ravel()) - neighbours)


def draw(results: dict[str, wl.Result], path: str) -> None:
    """Draw the residuals of all results into one picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for style, (name, result) in zip(("-", "--", "-.", ":"), results.items(), strict=True):
        axes.semilogy(result.residuals / result.residuals[0], style, lw=1.5, label=name)
    axes.axhline(RTOL, color="0.5", lw=0.8)
    axes.set(
        xlabel="iteration",
        ylabel="relative residual norm",
        title="Heat in a plate of two materials",
    )
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=RTOL / 100)
    axes.legend(frameon=False, loc="lower left")
    figure.savefig(path, dpi=100)


def main(cells: int = 150, executor: str = "omp") -> int:
    A = wl.Csr(heat_equation(conductivity(cells)), executor=executor)
    b = np.full(A.shape[0], 1 / cells**2)

    results = {
        "CG": wl.solve(A, b, method="cg", M="none", rtol=RTOL),
        "CG + Jacobi": wl.solve(A, b, method="cg", M="jacobi", rtol=RTOL),
        "BiCGSTAB + Jacobi": wl.solve(A, b, method="bicgstab", M="jacobi", rtol=RTOL),
        "GMRES(30) + Jacobi": wl.solve(A, b, method="gmres", M="jacobi", rtol=RTOL, maxiter=3000),
    }

    print(f"{A!r}, b: the same heat in every cell, tolerance {RTOL:g}")
    table = Table()
    for name in ("method", "iterations", "true residual", "seconds", "verdict"):
        is_text = name in ("method", "verdict")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=True)
    for name, result in results.items():
        relative = result.residual_norm / np.linalg.norm(b)
        verdict, _, _ = result.reason.partition(":")
        table.add_row(
            name, str(result.iterations), f"{relative:.2e}", f"{result.seconds:.3f}", verdict
        )
    Console(highlight=False).print(table)

    hottest = results["CG + Jacobi"].x.max()
    print(f"The hottest cell is {hottest:.4g} above the rim.")
    draw(results, "convergence.png")
    print("The convergence of all four is in convergence.png.")
    return 0 if results["CG + Jacobi"].converged else 1


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(main(*[int(arguments[0])] if arguments else [], *arguments[1:]))
