"""Iterations of every method compared with the same method elsewhere.

``python -m wollemi_bench.iterations_table FOLDER COUNTS PAGE`` writes a page. ``FOLDER`` has the
matrices; ``COUNTS`` is a CSV file of Ginkgo's counts, with columns ``system``, ``library``,
``method`` and ``iterations``. SciPy is counted in the same way: the first iteration with a true
residual below the tolerance.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse.linalg as spla

import wollemi as wl
from wollemi.core.errors import WollemiError

from .solve_table import square_systems
from .variable import layers, stretched, with_boxes

RTOL, LIMIT = 1e-8, 3000

#: Larger matrices are left out: SciPy's methods are asked for the residual of every iteration.
LARGEST = 10_000

#: The class of wollemi by name, and SciPy's function. ``SYMMETRIC`` names the ones for Hermitian
#: matrices.
METHODS: dict[str, Callable[..., Any]] = {
    "Cg": spla.cg,
    "Minres": spla.minres,
    "Bicgstab": spla.bicgstab,
    "Cgs": spla.cgs,
    "Bicg": spla.bicg,
    "Tfqmr": spla.tfqmr,
    "Gmres": spla.gmres,
}
SYMMETRIC = ("Cg", "Minres")

#: The share of further iterations that is no miss; residuals of the others are erratic.
SMOOTH, ERRATIC = 1.05, 1.5
ALLOWED = {"Cg": SMOOTH, "Minres": SMOOTH, "Bicg": SMOOTH, "Gmres": SMOOTH}


@dataclass(frozen=True)
class Pair:
    """One method on one system, wollemi's and theirs; None where it did not converge."""

    system: str
    method: str
    ours: float | None
    theirs: float | None
    allowed: float

    @property
    def verdict(self) -> str:
        """How they compare."""
        if self.theirs is None:
            return "both fail" if self.ours is None else "wollemi alone"
        if self.ours is None:
            return "**the other alone**"
        # systems of a few unknowns differ by one iteration or two of rounding
        within = self.ours <= max(self.allowed * self.theirs, self.theirs + 2)
        return "within" if within else f"**{self.ours / self.theirs:.2f} x**"


class _ReachedError(Exception):
    """The true residual has met the tolerance."""


def scipys_count(method: str, function: Callable[..., Any], A: Any, b: Any) -> int | None:
    """Return the first iteration of SciPy's method with a residual that meets the tolerance."""
    count, target = 0, RTOL * float(np.linalg.norm(b))

    def seen(reached: Any) -> None:
        nonlocal count
        count += 1
        if method == "Gmres":  # this one is told the relative norm
            met = float(reached) <= RTOL
        else:
            met = float(np.linalg.norm(b - A @ reached)) <= target
        if met:
            raise _ReachedError

    options: dict[str, Any] = {"rtol": 1e-15, "maxiter": LIMIT, "callback": seen}
    if method == "Gmres":
        options |= {"restart": 30, "callback_type": "pr_norm", "maxiter": LIMIT // 30}
    try:
        with np.errstate(all="ignore"):
            function(A, b, **options)
    except _ReachedError:
        # SciPy calls back after each half of an iteration of TFQMR
        return -(-count // 2) if method == "Tfqmr" else count
    except (ArithmeticError, ValueError):
        return None
    return None


def our_count(A: Any, b: Any, method: str, M: Any = None, **options: Any) -> int | None:
    """Return the iterations of our method, None where it did not converge."""
    settings = {"rtol": RTOL, "maxiter": LIMIT, **options}
    try:
        found = getattr(wl.solvers, method)(A, M=M, **settings).solve(b)
    except WollemiError:
        return None
    return found.iterations if found.converged else None


def beside_scipy(folder: Path) -> Iterator[Pair]:
    """Compare all methods on the square matrices of a folder, without its subfolders."""
    for name, A, b in square_systems(folder):
        S = A.to_scipy().tocsr()
        if "/" in name or A.shape[0] > LARGEST:
            continue
        hermitian = (S != S.conj().T).nnz == 0
        for method, function in METHODS.items():
            if method in SYMMETRIC and not hermitian:
                continue
            ours, theirs = our_count(A, b, method), scipys_count(method, function, S, b)
            if theirs is not None or ours is not None:
                yield Pair(name, method, ours, theirs, ALLOWED.get(method, ERRATIC))


def least_squares(folder: Path) -> Iterator[Pair]:
    """Compare Lsqr and Lsmr on well1850, with SciPy's rules."""
    for path in folder.glob("well1850*"):
        A = wl.read(path)
        S, b = A.to_scipy().tocsr(), np.random.default_rng(0).standard_normal(A.shape[0])
        for ours, theirs, at in ((wl.linalg.lsqr, spla.lsqr, 2), (wl.linalg.lsmr, spla.lsmr, 2)):
            name = ours.__name__.capitalize()
            pair = int(ours(A, b)[at]), int(theirs(S, b)[at])
            yield Pair("well1850", name, *pair, SMOOTH)


#: Systems that Ginkgo was asked to solve, by the name in its counts.
SYSTEMS: dict[str, Callable[[], Any]] = {
    "poisson30": lambda: layers(30, 1.0),
    "aniso30_1e-3": lambda: stretched(30, 1e-3),
    "jump30_1e4": lambda: layers(30, 1e4),
    "jump30_1e6": lambda: layers(30, 1e6),
    "boxes30_1e6": lambda: with_boxes(30, 1e6),
}

#: Ginkgo's name of a method, wollemi's, its preconditioner and options.
GINKGO: dict[str, tuple[str, str, dict[str, Any]]] = {
    "cg+jacobi": ("Cg", "jacobi", {}),
    "cg+bj8": ("Cg", "blockjacobi:size=8", {}),
    "cg+bj32": ("Cg", "blockjacobi:size=32", {}),
    "cg+ic": ("Cg", "ic", {}),
    "gmres+ilu": ("Gmres", "ilu", {"restart": 30}),
    "gmres+parilut": ("Gmres", "ilut:fill=2.0,drop=0.0,factor_sweeps=5", {"restart": 30}),
    "cbgmres": ("Gmres", "jacobi", {"restart": 30, "basis": "float32"}),
    "idr4": ("Idr", "jacobi", {"s": 4}),
}

#: Comparisons of wollemi with itself: a label, the other preconditioner, and the permitted share.
OURS: dict[str, tuple[str, str, float]] = {
    "adaptive storage, float64": (
        "blockjacobi:size=8,storage=adaptive",
        "blockjacobi:size=8",
        1.05,
    ),
    "3 sweeps beside exact IC(0)": ("ic:factor_sweeps=3,apply=jacobi:3", "ic", 1.3),
    "Chebyshev(4) beside Jacobi": ("polynomial:degree=4", "jacobi", 0.35),
}


def beside_ginkgo(counts: Path) -> Iterator[Pair]:
    """Compare with Ginkgo's recorded counts, and variants of wollemi with each other."""
    with counts.open(newline="") as file:
        known = {
            (row["system"], row["method"]): int(row["iterations"])
            for row in csv.DictReader(file)
            if row["library"] == "ginkgo"
        }
    for system, build in SYSTEMS.items():
        S = build()
        A = wl.Csr(S)
        b = np.random.default_rng(7).standard_normal(S.shape[0])
        b /= np.linalg.norm(b)
        for label, (method, M, options) in GINKGO.items():
            theirs = known.get((system, label))
            if theirs is None:
                continue
            ours = our_count(A, b, method, M, **{**options, "maxiter": 1500})
            yield Pair(system, label, ours, None if theirs >= 1500 else theirs, 1.1)
        for label, (M, other, allowed) in OURS.items():
            pair = our_count(A, b, "Cg", M), our_count(A, b, "Cg", other)
            yield Pair(system, label, *pair, allowed)


def _cell(value: float | None) -> str:
    return "no convergence" if value is None else f"{value:g}"


def table(pairs: list[Pair], other: str) -> str:
    """Return pairs as a table in Markdown."""
    lines = [
        f"| system | method | wollemi | {other} | allowed | |",
        "| --- | --- | --: | --: | --: | --- |",
    ]
    for pair in pairs:
        cells = [pair.system, pair.method, _cell(pair.ours), _cell(pair.theirs)]
        lines.append("| " + " | ".join([*cells, f"{pair.allowed:g} x", pair.verdict]) + " |")
    return "\n".join(lines)


def counted(pairs: list[Pair]) -> str:
    """Return how many pairs are within the limit."""
    missed = sum("**" in pair.verdict for pair in pairs)
    good = len(pairs) - missed
    return f"{good} of {len(pairs)} are within the limit, or solved by wollemi alone."


MISSES = """\
karate is indefinite, and singular with rank 24 of 34: Cg ends and says so, and SciPy goes on. For
a random right-hand side it has no solution, and `Minres` and `Gmres` say so. With
`atol=btol=1e-12` SciPy's LSQR takes 483 iterations on well1850 with `b = A @ ones`,
wollemi's 482.
LFAT5 has 14 unknowns and the condition number 1e8: methods that would end within 14 iterations in
exact arithmetic end where rounding lets them.

ParILUT keeps twice the entries of each half of the matrix in both libraries (`Ilut(drop=0,
sweeps=5)`), and triangles are solved exactly. wollemi sweeps twice after each change of the
pattern, all entries at once; Ginkgo's reference executor sweeps once, in the order of rows.

In the rows of three sweeps, three make the factors and three apply them, as devices do by
default. Three sweeps that apply *exact* factors take more on layers of 1e6: 166 iterations. The
cost is in the application: factors of three sweeps, applied exactly, take 127, against 124."""


def page(scipys: list[Pair], ginkgos: list[Pair]) -> str:
    """Return the whole page."""
    return f"""# Iterations compared with other libraries

Iterations of each method to a relative residual of {RTOL:g}, at most {LIMIT}. Made by
`python -m wollemi_bench.iterations_table FOLDER COUNTS PAGE`, on {wl.get_default_executor().name}.

## SciPy {scipy.__version__}

Square matrices of up to {LARGEST} rows with `b = A @ ones`, no preconditioner, GMRES(30). SciPy's
count is the first iteration with a true residual that meets the tolerance (GMRES: its estimate).
Methods with smooth residuals may take {SMOOTH} times SciPy's count, the others {ERRATIC} times.
{counted(scipys)} Small systems such as LFAT5, with 14
unknowns, show the effect of rounding, which the last section explains.

{table(scipys, "SciPy")}

## Ginkgo 2.0

Diffusion on 30^3 cells: constant, stretched, layers and boxes of high contrast. Ginkgo's counts
were recorded with its reference executor. An iteration of IDR(4) has 5 products in both. The last
kinds of rows compare wollemi with itself. {counted(ginkgos)}

{table(ginkgos, "Ginkgo, or the other solver")}

## Cases beyond the limit

{MISSES}
"""


def main(folder: str, counts: str, target: str) -> None:
    """Count, and write the page."""
    scipys = [*beside_scipy(Path(folder)), *least_squares(Path(folder))]
    print(f"beside SciPy: {counted(scipys)}", flush=True)
    ginkgos = list(beside_ginkgo(Path(counts)))
    print(f"beside Ginkgo: {counted(ginkgos)}", flush=True)
    Path(target).write_text(page(scipys, ginkgos), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python -m wollemi_bench.iterations_table FOLDER COUNTS PAGE")
    main(*sys.argv[1:])
