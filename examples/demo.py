"""Heat in a plate of two materials: one system, wollemi and SciPy, a table and a plot.

    make demo                               or
    python examples/demo.py [cells] [executor]

The plate is heated from within and held at zero along its rim. The conductivities of its two
materials differ by a factor of 100, which makes the system hard for simple methods. It has 22,500
unknowns and is symmetric positive definite. Finite volumes give the matrix.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from rich.console import Console
from rich.table import Table

import wollemi as wl

RTOL = 1e-8


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    method: str
    iterations: str
    residual: float
    seconds: float
    verdict: str


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

    The conductance between two cells is the harmonic mean of their conductivities.
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
    links = sp.coo_array((g, (i, j)), shape=(k.size, k.size))
    links = links + links.T
    return sp.csr_array(sp.diags_array(links.sum(axis=1) + rim.ravel()) - links)


def with_wollemi(method: str, solve: Callable[[], wl.Result], b: np.ndarray) -> Row:
    """Solve with wollemi; the time includes the set-up of the preconditioner."""
    start = time.perf_counter()
    result = solve()
    seconds = time.perf_counter() - start
    verdict, _, _ = result.reason.partition(":")
    relative = float(result.residual_norm / np.linalg.norm(b))
    return Row(method, str(result.iterations), relative, seconds, verdict)


def with_scipy(method: str, solve: Callable[[], tuple[np.ndarray, str]], S, b) -> Row:
    """Solve with SciPy, which returns no residual: it is computed here."""
    start = time.perf_counter()
    x, iterations = solve()
    seconds = time.perf_counter() - start
    relative = float(np.linalg.norm(b - S @ x) / np.linalg.norm(b))
    return Row(method, iterations, relative, seconds, "not checked")


def scipy_cg(S: sp.csr_array, b: np.ndarray) -> tuple[np.ndarray, str]:
    """Solve by SciPy's CG with the diagonal as the preconditioner."""
    iterations = 0

    def count(_: np.ndarray) -> None:
        nonlocal iterations
        iterations += 1

    x, _ = spla.cg(
        S, b, rtol=RTOL, maxiter=10_000, M=sp.diags_array(1 / S.diagonal()), callback=count
    )
    return x, str(iterations)


def draw(results: dict[str, wl.Result], path: str) -> None:
    """Plot the residuals of all results."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for style, (name, result) in zip(("-", "--", ":"), results.items(), strict=True):
        axes.loglog(
            np.arange(1, len(result.residuals) + 1),
            result.residuals / result.residuals[0],
            style,
            lw=1.8,
            label=f"{name}: {result.iterations} iterations",
        )
    axes.axhline(RTOL, color="0.5", lw=0.8)
    axes.set(
        xlabel="iteration",
        ylabel="relative residual norm",
        title="Heat in a plate of two materials, 22,500 unknowns",
    )
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=RTOL / 10)
    axes.legend(frameon=False, loc="center left")
    figure.savefig(path, dpi=100)


def main(cells: int = 150, executor: str = "omp") -> int:
    S = heat_equation(conductivity(cells))
    A = wl.Csr(S, executor=executor)
    b = np.full(A.shape[0], 1 / cells**2)
    results: dict[str, wl.Result] = {}

    def keep(name: str, **options) -> Callable[[], wl.Result]:
        def solve() -> wl.Result:
            results[name] = wl.solve(A, b, rtol=RTOL, **options)
            return results[name]

        return solve

    wl.solve(A, b, rtol=RTOL)  # loads the modules, so that no row pays for it
    rows = [
        with_wollemi("wl.solve(A, b)", keep("wl.solve"), b),
        with_wollemi("  CG + multigrid", keep("CG + multigrid", method="cg", M="amg"), b),
        with_wollemi("  CG + Jacobi", keep("CG + Jacobi", method="cg", M="jacobi"), b),
        with_wollemi("  CG", keep("CG", method="cg", M="none"), b),
        with_scipy("scipy spsolve", lambda: (spla.spsolve(S.tocsc(), b), "direct"), S, b),
        with_scipy("scipy cg + Jacobi", lambda: scipy_cg(S, b), S, b),
    ]

    print(f"{A!r}, the same heat in every cell, relative tolerance {RTOL:g}")
    table = Table()
    for name in ("method", "iterations", "true residual", "seconds", "verdict"):
        is_text = name in ("method", "verdict")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=True)
    for row in rows:
        cells_of_row = (row.method, row.iterations, f"{row.residual:.1e}", f"{row.seconds:.3f}")
        table.add_row(*cells_of_row, row.verdict)
    Console(highlight=False).print(table)

    print(f"The hottest cell is {results['wl.solve'].x.max():.4g} above the rim.")
    draw(
        {name: results[name] for name in ("CG", "CG + Jacobi", "CG + multigrid")}, "convergence.png"
    )
    print("The convergence of CG with three preconditioners is in convergence.png.")
    return 0 if results["wl.solve"].converged else 1


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(main(*[int(arguments[0])] if arguments else [], *arguments[1:]))
