"""Block Jacobi, stored in single precision below a solver in double precision.

A preconditioner is an approximation, so that its values need few digits. Stored in float32 they
take half of the memory and cost no iteration.
"""

import numpy as np
import scipy.sparse as sp

import wollemi as wl

# three unknowns at each point of a line, coupled strongly with one another
rng = np.random.default_rng(0)
points = 400
nodes = [3 * np.eye(3) + 0.9 * (block + block.T) for block in rng.random((points, 3, 3))]
line = sp.diags_array([-1.0, -1.0], offsets=[-1, 1], shape=(points, points))
S = sp.block_diag(nodes) + sp.kron(line, 0.5 * np.eye(3)) + 4 * sp.eye_array(3 * points)
A = wl.Csr(sp.csr_array(S))
b = np.ones(3 * points)

blocks = wl.preconditioners.BlockJacobi(A, size=3)
choices = {
    "Jacobi": wl.preconditioners.Jacobi(A),
    "blocks of 3, float64": blocks,
    "blocks of 3, float32": blocks.astype("float32"),
}
found = {}
for name, M in choices.items():
    result = wl.solvers.Cg(A, M, rtol=1e-10).solve(b)
    found[name] = result.iterations
    print(f"{name:22s} {M.dtype}: {result.iterations:3d} iterations, {result.reason}")
    assert result.converged
assert found["blocks of 3, float32"] <= found["blocks of 3, float64"] + 1
assert found["blocks of 3, float64"] < found["Jacobi"]
