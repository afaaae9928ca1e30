"""Multigrid as a preconditioner: the number of iterations hardly grows with the grid.

The levels come from the matrix alone. In float32 they take half of the memory below a solver in
float64 and cost no iteration.
"""

import numpy as np
import scipy.sparse as sp

import wollemi as wl


def diffusion(side: int) -> wl.Csr:
    """Return the 5-point Laplacian on side x side cells."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    return wl.Csr(sp.csr_array(sp.kronsum(line, line)))


print("   cells   Jacobi   multigrid   multigrid in float32")
for side in (20, 40, 80, 160):
    A = diffusion(side)
    b = np.random.default_rng(0).standard_normal(side * side)
    amg = wl.preconditioners.Amg(A)
    single = wl.preconditioners.Amg(A, dtype="float32")
    results = [wl.solvers.Cg(A, M, rtol=1e-8).solve(b) for M in ("jacobi", amg, single)]
    assert all(result.converged for result in results)
    jacobi, double, float32 = (result.iterations for result in results)
    print(f"{side:4d}²   {jacobi:6d}   {double:9d}   {float32:9d}")
assert double < 15

print(amg)
try:
    amg.plot().savefig("multigrid.png", dpi=110)
except wl.errors.InvalidArgument as missing:  # matplotlib is optional
    print(missing)
