"""Multigrid with levels of your own: for who knows the grid better than the matrix tells."""

import numpy as np
import scipy.sparse as sp

import wollemi as wl


def interpolation(coarse: int) -> sp.csr_array:
    """Return linear interpolation from ``coarse`` points of a line to 2 coarse + 1 points."""
    fine = 2 * coarse + 1
    j = np.arange(coarse)
    rows = np.concatenate([2 * j, 2 * j + 1, 2 * j + 2])
    values = np.repeat([0.5, 1.0, 0.5], coarse)
    return sp.csr_array((values, (rows, np.tile(j, 3))), shape=(fine, coarse))


# diffusion on 127 x 127 points, then 63 x 63, and so on; interpolation in both directions
side = 127
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
A = sp.csr_array(sp.kronsum(line, line))
levels = []
while side > 7:
    P = sp.csr_array(sp.kron(interpolation(side // 2), interpolation(side // 2)))
    levels.append((A, P))
    A = sp.csr_array(P.T @ A @ P)
    side //= 2
levels.append(A)

M = wl.preconditioners.Multigrid.from_levels(levels, smoother="jacobi", sweeps=2)
print(M)
fine = wl.Csr(levels[0][0])
b = np.ones(fine.shape[0])
for name, chosen in (("Jacobi", "jacobi"), ("your levels", M)):
    result = wl.solvers.Cg(fine, chosen, rtol=1e-8).solve(b)
    print(f"CG with {name:12s} {result.iterations:4d} iterations")
    assert result.converged
assert result.iterations < 25
