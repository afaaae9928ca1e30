"""Reorder a matrix before it is factorized: entries near the diagonal make better factors.

``rcm`` brings the entries near the diagonal, which helps incomplete factors. ``amd`` keeps complete
factors sparse, and does nothing for incomplete ones.
"""

import sys

import numpy as np
import scipy.sparse as sp

import wollemi as wl

# a grid with points numbered at random
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(40, 40))
S = sp.csr_array(sp.kronsum(line, line))
shuffled = np.random.default_rng(0).permutation(S.shape[0])
A = wl.Csr(S[shuffled][:, shuffled])
b = np.ones(A.shape[0])


def bandwidth(matrix: wl.Csr) -> int:
    """Return how far from the diagonal the farthest entry is."""
    found = matrix.to_scipy().tocoo()
    return int(abs(found.row - found.col).max())


orders = {"as it comes": None, "rcm": wl.reorder.rcm(A), "amd": wl.reorder.amd(A)}
matrices, solutions = {}, []
for name, p in orders.items():
    B = A if p is None else A.permute(p)
    result = wl.solvers.Cg(B, M="ic", rtol=1e-10).solve(b if p is None else p @ b)
    print(f"{name:12s} bandwidth {bandwidth(B):5d}, CG with IC: {result.iterations} iterations")
    assert result.converged
    matrices[name] = B
    solutions.append(result.x if p is None else p.T @ result.x)  # back in the order of A
assert all(np.allclose(x, solutions[0], rtol=1e-6) for x in solutions)
assert bandwidth(matrices["rcm"]) < bandwidth(A) / 10

try:
    from matplotlib.figure import Figure
except ImportError:
    sys.exit()
figure = Figure(figsize=(9, 3.2), layout="constrained")
for axes, (name, B) in zip(figure.subplots(1, 3), matrices.items(), strict=True):
    axes.spy(B.to_scipy(), markersize=0.6, color="k")
    axes.set_title(name)
    axes.set_xticks([])
    axes.set_yticks([])
figure.savefig("reorder.png", dpi=110)
