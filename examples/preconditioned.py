"""Preconditioners side by side: iterations, and a picture of how the residual falls."""

import sys

import numpy as np
import scipy.sparse as sp

import wollemi as wl

# diffusion through layers that conduct 1 and 1000
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(50, 50))
layers = np.where(np.arange(50) % 10 < 5, 1.0, 1000.0)
across = sp.diags_array(np.sqrt(layers))
A = wl.Csr(
    sp.csr_array(
        sp.kron(across @ line @ across, sp.eye_array(50)) + sp.kron(sp.diags_array(layers), line)
    )
)
b = np.random.default_rng(0).standard_normal(2500)

names = (None, "jacobi", "polynomial:degree=4", "ssor", "fsai", "ic", "amg")
results = {}
for name in names:
    result = wl.solvers.Cg(A, M=name, rtol=1e-8, maxiter=5000).solve(b)
    results[name or "none"] = result
    print(f"{name or 'none':20s} {result.iterations:5d} iterations")
    assert result.converged
assert results["amg"].iterations < results["ic"].iterations < results["jacobi"].iterations

try:
    from matplotlib.figure import Figure
except ImportError:
    sys.exit()
figure = Figure(figsize=(7, 3.6), layout="constrained")
axes = figure.subplots()
dashes = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
for number, (name, result) in enumerate(results.items()):
    shade = f"{0.08 * number:.2f}"
    axes.semilogy(
        result.residuals / result.residuals[0], color=shade, ls=dashes[number], label=name
    )
axes.set(xlabel="iteration", ylabel="residual, relative", xlim=(0, results["jacobi"].iterations))
axes.legend(frameon=False, ncols=2, fontsize=8)
axes.grid(color="0.9")
figure.savefig("preconditioned.png", dpi=110)
