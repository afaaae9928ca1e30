"""Iterative refinement: solve roughly, compute the true residual, solve for the correction.

The inner solver may be anything that makes a residual smaller: a few steps of CG, or an incomplete
factorization alone.
"""

import numpy as np
import scipy.sparse as sp

import wollemi as wl

line = sp.diags_array([-1.0, 2.2, -1.0], offsets=[-1, 0, 1], shape=(40, 40))
A = wl.Csr(sp.csr_array(sp.kronsum(line, line)))
b = np.ones(1600)

inners = {
    "CG, until a tenth is left": wl.solvers.Cg(rtol=0.1),
    "GMRES, five iterations": wl.solvers.Gmres(maxiter=5),
    "ILU(0) alone": wl.preconditioners.Ilu(A),
}
for name, inner in inners.items():
    result = wl.solvers.Ir(A, inner=inner, rtol=1e-10).solve(b)
    print(f"{name:26s} {result.iterations:3d} corrections, {result.reason}")
    assert result.converged
    assert np.linalg.norm(b - A @ result.x) <= 1e-10 * np.linalg.norm(b) * (1 + 1e-6)
