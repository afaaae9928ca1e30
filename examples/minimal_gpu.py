"""The smallest program for a GPU: a matrix is placed there, and everything else follows it.

Without an NVIDIA GPU it runs on the cores of the CPU and says so.
"""

import numpy as np
import scipy.sparse as sp

import wollemi as wl

here = {found.name: found for found in wl.available_executors()}
place = "cuda:0" if "cuda:0" in here and here["cuda:0"].available else "omp"
print(f"runs on {place}")

n = 10_000
S = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()

A = wl.Csr(S, executor=place)  # the only line that names a device
result = wl.solvers.Cg(A, M="jacobi", rtol=1e-8).solve(np.ones(n))
print(result.reason)
print(f"x[0] = {result.x[0]:.6f}, after {result.iterations} iterations")
assert result.converged
