"""Other libraries: SciPy's functions take wollemi matrices, and wollemi takes their operators."""

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import wollemi as wl

line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(40, 40))
S = sp.csr_array(sp.kronsum(line, line))
A = wl.Csr(S)
b = np.ones(1600)

# SciPy's functions that only multiply take a wollemi matrix as it is
x, info = spla.minres(A, b, rtol=1e-8)
largest = spla.eigsh(A, k=1, return_eigenvectors=False)[0]
print(f"SciPy's minres: info {info}; largest eigenvalue by ARPACK {largest:.6f}")

# functions that read the entries need SciPy's own matrix
print(f"connected components: {sp.csgraph.connected_components(A.to_scipy())[0]}")

# a factorization of SciPy is a preconditioner of wollemi
spilu = spla.spilu(S.tocsc(), drop_tol=1e-3)
M = spla.LinearOperator(S.shape, matvec=spilu.solve)
result = wl.solvers.Gmres(A, M=M, rtol=1e-8).solve(b)
print(f"our GMRES with SciPy's spilu: {result.iterations} iterations")
assert info == 0 and result.converged

try:
    import pyamg
except ImportError:
    print("PyAMG is not here: pip install pyamg")
else:
    hierarchy = pyamg.smoothed_aggregation_solver(S)
    for name, M in (
        ("PyAMG's cycle on the host", hierarchy.aspreconditioner()),
        ("PyAMG's levels on our executor", wl.preconditioners.Multigrid.from_pyamg(hierarchy)),
    ):
        result = wl.solvers.Cg(A, M=M, rtol=1e-8).solve(b)
        print(f"our CG with {name}: {result.iterations} iterations")
        assert result.converged
