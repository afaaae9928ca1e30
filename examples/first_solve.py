"""The shortest way from a SciPy matrix to a solution and a verdict."""

import numpy as np
import scipy.sparse as sp

import wollemi as wl

n = 200
S = sp.diags_array([-1.0, 2.01, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
b = np.ones(n)

# wl.solve picks a solver and a preconditioner, and says which
result = wl.solve(S, b, rtol=1e-10)
print(result.reason)
for note in result.notes:
    print(" ", note)
print(f"{result.iterations} iterations, true residual {result.residual_norm:.1e}")
assert result.converged
assert np.linalg.norm(b - S @ result.x) <= 1e-10 * np.linalg.norm(b)

# the same with everything said; the solver is made once and used for many right-hand sides
A = wl.Csr(S)
solver = wl.solvers.Cg(A, M=wl.preconditioners.Jacobi(A), rtol=1e-10)
for frequency in (1, 2, 3):
    x, info = solver.solve(np.sin(frequency * np.linspace(0, np.pi, n)))
    print(f"frequency {frequency}: largest value {abs(x).max():.4g}, info {info}")

# or many at once, each column with its own verdict
block = solver.solve(np.random.default_rng(0).standard_normal((n, 4)))
print(f"4 columns: {block.column_iterations} iterations")

# SciPy's signatures are there too
x, info = wl.linalg.gmres(A, b, rtol=1e-8, restart=50)
assert info == 0
