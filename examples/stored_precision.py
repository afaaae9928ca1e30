"""A matrix stored in fewer digits than are computed with: half of the memory, or a quarter."""

import numpy as np
import scipy.sparse as sp

import wollemi as wl

line = sp.diags_array([-1.0, 2.3, -1.0], offsets=[-1, 0, 1], shape=(60, 60))
A = wl.Csr(sp.csr_array(sp.kronsum(line, line)))
x = np.cos(np.arange(3600))
y = A @ x

for stored in ("float64", "float32", "float16", "bfloat16"):
    S = A if stored == "float64" else A.stored(stored)
    difference = np.linalg.norm(S @ x - y) / np.linalg.norm(y)
    bits = S.nbytes - A.indices.nbytes - A.indptr.nbytes
    print(f"{stored:9s} values take {bits:6d} bytes, a product differs by {difference:.0e}")

# a solver of S solves the system of the rounded values; refinement with A puts the digits back
S = A.stored("float16")
b = np.ones(3600)
inner = wl.solvers.Cg(S, rtol=1e-3)
result = wl.solvers.Ir(A, inner=inner, rtol=1e-12).solve(b)
print(f"stored in float16, refined: {result.iterations} corrections, {result.reason}")
assert result.converged
