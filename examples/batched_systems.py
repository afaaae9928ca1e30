"""A chemistry step in every cell: thousands of systems of one pattern in one call.

The counterpart of Ginkgo's batched-solver program: BiCGSTAB with Jacobi, a residual for each
system.

    python examples/batched_systems.py [cells]
"""

import sys

import numpy as np

import wollemi as wl

cells = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
n = 30
rng = np.random.default_rng(0)

# One pattern for all cells, and the values of each.
apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
inside = (apart <= 1) | (rng.random((n, n)) < 0.3)
indptr = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
indices = np.nonzero(inside)[1]
dense = rng.uniform(-1, 1, (cells, n, n)) * inside
dense += (abs(dense).sum(axis=2).max(axis=1)[:, None, None] + 0.1) * np.eye(n)
A = wl.Csr((dense[:, inside], indices, indptr), shape=(n, n))
b = rng.standard_normal((cells, n))
print(A)

solver = wl.solvers.Bicgstab(A, M="jacobi", rtol=1e-8)
result = solver.solve(b).require_converged()
print("iterations of the first cells:", result.iterations[:10].tolist())
residual = np.linalg.norm(b - A @ result.x, axis=1) / np.linalg.norm(b, axis=1)
print(f"largest relative residual: {residual.max():.1e}")
assert residual.max() <= 1.001e-8

# New values, the same solver; each system starts from its last solution.
A.update_values(dense[:, inside] * (1 + 0.01 * rng.standard_normal(indices.size)))
again = solver.solve(b, x0=result.x).require_converged()
print(f"mean iterations: {result.iterations.mean():.1f} from zero, {again.iterations.mean():.1f}")

# Factors instead of iterations.
direct = wl.solvers.Direct(A, rtol=1e-10).solve(b).require_converged()
print(direct)
