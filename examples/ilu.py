"""GMRES with incomplete LU factors, made exactly or by sweeps, applied by substitution or products.

Factors row by row are the textbook's way. A GPU has no use for one row after the other: there three
sweeps over all entries at once make the factors, and three products with each triangle apply them.
You can ask for either way on every executor.
"""

import numpy as np
import scipy.sparse as sp

import wollemi as wl


def convection(n: int, wind: float) -> sp.csr_array:
    """Return diffusion on n x n cells with a wind from one corner to the other."""
    line = sp.diags_array([-1.0 - wind, 2.0, -1.0 + wind], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csr_array(sp.kronsum(line, line))


A = wl.Csr(convection(60, 0.4))
b = np.ones(A.shape[0])

choices = {
    "no preconditioner": None,
    "ILU(0), substitution": wl.preconditioners.Ilu(A, factor_sweeps="exact", apply="exact"),
    "ILU(1), substitution": wl.preconditioners.Ilu(
        A, level=1, factor_sweeps="exact", apply="exact"
    ),
    "ILU(0), 3 sweeps, 3 products": wl.preconditioners.Ilu(A, factor_sweeps=3, apply="jacobi:3"),
    "ILU(0), 3 sweeps, approximate inverse": wl.preconditioners.Ilu(
        A, factor_sweeps=3, apply="isai:1"
    ),
}
found = {}
for name, M in choices.items():
    result = wl.solvers.Gmres(A, M, restart=30, rtol=1e-8).solve(b)
    found[name] = result.iterations
    print(f"{name:40s} {result.iterations:4d} iterations")
    assert result.converged
assert found["ILU(1), substitution"] < found["ILU(0), substitution"] < found["no preconditioner"]
