"""Inverse iteration: the eigenvalue nearest to a number, by one solve in each step.

A step solves (A - z I) y = x and scales y to length 1. The matrix is complex, and GMRES solves. The
first answers need few digits: each step asks for two more digits than the step before reached.
"""

import numpy as np
import scipy.sparse as sp

import wollemi as wl

z = 0.3 + 0.1j
long, short = (
    sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)) for n in (24, 15)
)
n = 24 * 15
S = sp.csr_array(sp.kronsum(long, short) + 0.2j * sp.diags_array(np.linspace(0, 1, n)))

A = wl.Csr(S)
shifted = wl.Csr(sp.csr_array(S - z * sp.eye_array(n)))
M = wl.preconditioners.Ilu(shifted)

x = np.full(n, 1 / np.sqrt(n), dtype=complex)
residual = 1.0
for step in range(1, 41):
    solver = wl.solvers.Gmres(shifted, M, rtol=max(1e-2 * residual, 1e-12), restart=60)
    solved = solver.solve(x)
    x = solved.x / np.linalg.norm(solved.x)
    eigenvalue = np.vdot(x, A @ x)
    residual = np.linalg.norm(A @ x - eigenvalue * x)
    if step % 5 == 1 or residual < 1e-10:
        print(
            f"step {step:2d}: {eigenvalue:.10f}, residual {residual:.1e}, "
            f"{solved.iterations} iterations of GMRES"
        )
    if residual < 1e-10:
        break
assert residual < 1e-10

# NumPy computes all eigenvalues of so small a matrix
everything = np.linalg.eigvals(S.toarray())
nearest = everything[np.argmin(abs(everything - z))]
print(f"NumPy's nearest eigenvalue: {nearest:.10f}")
assert abs(nearest - eigenvalue) < 1e-9
