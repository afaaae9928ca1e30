"""Where the time of a solve goes: every operation with its calls, its time and its bandwidth."""

import numpy as np
import scipy.sparse as sp

import wollemi as wl

line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(120, 120))
A = wl.Csr(sp.csr_array(sp.kronsum(line, line)))
b = np.ones(A.shape[0])
solver = wl.solvers.Cg(A, M="jacobi", rtol=1e-8)
solver.solve(b)  # the first solve also makes plans, which are not measured

with wl.profile() as seen:
    result = solver.solve(b)
print(seen)

products = seen["csr.spmv"]
print(f"{products.calls} products for {result.iterations} iterations")
print("chosen for the products:", A.plan)
assert products.calls >= result.iterations
