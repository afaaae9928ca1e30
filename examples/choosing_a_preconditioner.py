"""Which preconditioner for which system: the iterations that each takes, and how residuals fall.

Run as ``python choosing_a_preconditioner.py [POINTS [PICTURE.png]]``: systems on POINTS^3 points,
16 by default; the picture needs matplotlib.
"""

import sys

import numpy as np
import scipy.sparse as sp

import wollemi as wl


def diffusion(coefficient):
    """Return finite volumes on n^3 cells with a coefficient of shape (n, n, n)."""
    n = coefficient.shape[0]
    cells = np.arange(n**3).reshape(n, n, n)
    diagonal, rows, columns, values = np.zeros((n, n, n)), [], [], []
    for axis in range(3):
        k, index, d = (np.moveaxis(a, axis, 0) for a in (coefficient, cells, diagonal))
        between = 2 * k[1:] * k[:-1] / (k[1:] + k[:-1])  # the harmonic mean at a face
        d[1:] += between
        d[:-1] += between
        d[0] += 2 * k[0]
        d[-1] += 2 * k[-1]
        for here, there in ((index[1:], index[:-1]), (index[:-1], index[1:])):
            rows.append(here.ravel())
            columns.append(there.ravel())
            values.append(-between.ravel())
    rows, columns, values = (np.concatenate(parts) for parts in (rows, columns, values))
    off = sp.coo_array((values, (rows, columns)), shape=(n**3, n**3))
    return sp.csr_array(off + sp.diags_array(diagonal.ravel()))


def convection(n, peclet=100.0):
    """Return diffusion with a wind, upwind differences: not symmetric."""
    h = 1.0 / (n + 1)
    lines = []
    for wind in (1.0, 0.7, 0.3):
        w = peclet * h * wind
        lines.append(sp.diags_array([-1.0 - w, 2.0 + w, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
    return sp.csr_array(sp.kronsum(sp.kronsum(lines[2], lines[1]), lines[0]))


def systems(n):
    """Return the systems by name: the matrix, and the solver."""
    random = np.random.default_rng(0).random((n, n, n))
    return {
        "constant coefficient": (diffusion(np.ones((n, n, n))), wl.solvers.Cg),
        "random cells, contrast 1e4": (diffusion(1e4**random), wl.solvers.Cg),
        "convection": (convection(n), wl.solvers.Bicgstab),
    }


#: The preconditioners to compare, with their solvers.
PRECONDITIONERS = {
    "none": ("Cg", "Bicgstab"),
    "jacobi": ("Cg", "Bicgstab"),
    "polynomial:degree=4": ("Cg",),
    "fsai": ("Cg",),
    "isai": ("Bicgstab",),
    "ic": ("Cg",),
    "ic:factor_sweeps=3,apply=jacobi:3": ("Cg",),
    "ic:level=1": ("Cg",),
    "ilu": ("Bicgstab",),
    "ilu:factor_sweeps=3,apply=jacobi:3": ("Bicgstab",),
    "blockschwarz": ("Cg", "Bicgstab"),
    "amg": ("Cg", "Bicgstab"),
}


def measured(n):
    """Return the result of every preconditioner for every system."""
    found = {}
    for name, (S, solver) in systems(n).items():
        A = wl.Csr(S)
        b = np.random.default_rng(1).standard_normal(S.shape[0])
        for M, solvers in PRECONDITIONERS.items():
            if solver.__name__ not in solvers:
                continue
            # blocks that are solved each by itself must add up for M to be symmetric
            restricted = "" if solver is not wl.solvers.Cg else ":restricted=False,inner=ic"
            text = M + restricted if M == "blockschwarz" else M
            found[name, M] = solver(A, M=text, rtol=1e-8, maxiter=1000).solve(b)
    return found


def table(found):
    """Print the iterations to a residual of 1e-8."""
    names = list(dict.fromkeys(name for name, _ in found))
    print("| `M` | " + " | ".join(names) + " |")
    print("| --- |" + " --- |" * len(names))
    for M in PRECONDITIONERS:
        cells = []
        for name in names:
            result = found.get((name, M))
            cells.append("" if result is None else _cell(result))
        print(f"| `{M}` | " + " | ".join(cells) + " |")


def _cell(result):
    return str(result.iterations) if result.converged else result.stops[0].name.lower()


def draw(found, path):
    """Draw the residuals over the iterations into a file."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for name, _ in found))
    figure, panels = plt.subplots(1, len(names), figsize=(12, 4), dpi=110, sharey=True)
    colors = {M: f"C{i % 10}" for i, M in enumerate(PRECONDITIONERS)}
    dashes = ("-", "--", "-.", ":")  # to be told apart without colors
    styles = {M: dashes[i % len(dashes)] for i, M in enumerate(PRECONDITIONERS)}
    for axes, name in zip(panels, names, strict=True):
        for (system, M), result in found.items():
            if system == name:
                relative = result.residuals / result.residuals[0]
                axes.semilogy(relative, styles[M], color=colors[M], lw=1.4, label=M)
        axes.set(title=name, xlabel="iteration", ylim=(1e-9, 30))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("residual norm, relative")
    lines = {line.get_label(): line for axes in panels for line in axes.get_lines()}
    figure.legend(list(lines.values()), list(lines), loc="lower center", ncols=6, fontsize=8)
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    figure.savefig(path)


if __name__ == "__main__":
    results = measured(int(sys.argv[1]) if len(sys.argv) > 1 else 16)
    table(results)
    if len(sys.argv) > 2:
        draw(results, sys.argv[2])
