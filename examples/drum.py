"""The tones of an L-shaped drum: smallest eigenpairs of a Laplacian by LOBPCG.

``drum.py [cells] [picture.png]`` prints the tones, and draws the modes and the residuals.
"""

import sys

import numpy as np
import scipy.sparse as sp

import wollemi as wl

cells = int(sys.argv[1]) if len(sys.argv) > 1 else 40

# grid points inside of the L, and the 5-point Laplacian between them
inside = np.zeros((2 * cells + 1, 2 * cells + 1), bool)
inside[1:-1, 1:-1] = True
inside[cells:, cells:] = False
number = np.full(inside.shape, -1)
number[inside] = np.arange(np.count_nonzero(inside))
pairs = [
    (number[:-1].ravel(), number[1:].ravel()),
    (number[:, :-1].ravel(), number[:, 1:].ravel()),
]
row, col = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
both = (row >= 0) & (col >= 0)
n = int(np.count_nonzero(inside))
edges = sp.coo_array((-np.ones(both.sum()), (row[both], col[both])), shape=(n, n))
S = sp.csr_array(edges + edges.T + 4.0 * sp.eye_array(n)) * cells**2

A = wl.Csr(S)
results = {
    name: wl.solvers.Lobpcg(A, M, k=6, rtol=1e-8).solve()
    for name, M in (("no M", None), ("M = ic", "ic"), ("M = direct", wl.solvers.Direct(A)))
}
for name, result in results.items():
    print(f"{name:11s} {result.iterations:4d} iterations, {result.reason}")
result = results["M = direct"]
assert result.converged
print("eigenvalues", np.round(result.eigenvalues, 4))
# the first one of the domain is 9.6397; the grid is coarse and the corner is sharp
assert abs(result.eigenvalues[0] - 9.6397) < 6.0 / cells

if len(sys.argv) > 2:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    curves, first, third = figure.subplots(1, 3, width_ratios=[1.5, 1, 1])
    for name, found in results.items():
        curves.semilogy(found.residual_history.max(axis=1), label=name)
    curves.set_xlabel("iteration")
    curves.set_ylabel("largest residual norm of six pairs")
    curves.legend(frameon=False)
    curves.grid(alpha=0.3)
    for axes, mode in ((first, 0), (third, 2)):
        picture = np.full(inside.shape, np.nan)
        picture[inside] = result.eigenvectors[:, mode]
        axes.imshow(
            picture, cmap="RdBu", vmin=-np.nanmax(abs(picture)), vmax=np.nanmax(abs(picture))
        )
        axes.set_title(f"eigenvalue {result.eigenvalues[mode]:.3f}", fontsize=10)
        axes.axis("off")
    figure.savefig(sys.argv[2], dpi=130)
