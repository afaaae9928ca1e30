"""Take the factors of a preconditioner out, into files and into SciPy."""

import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import wollemi as wl

line = sp.diags_array([-1.0, 2.4, -1.3], offsets=[-1, 0, 1], shape=(20, 20))
A = wl.Csr(sp.csr_array(sp.kronsum(line, line)))
M = wl.preconditioners.Ilu(A, factor_sweeps="exact", apply="exact")

# the inverse of M, column by column: an approximation of A
approximation = np.linalg.inv(M.to_dense())
difference = np.linalg.norm(approximation - A.to_dense()) / np.linalg.norm(A.to_dense())
print(f"{M}\ndiffers from A by {difference:.1%}")

# SciPy's solvers take it as an operator
x, info = sp.linalg.bicgstab(A.to_scipy(), np.ones(400), M=M.to_scipy_operator(), rtol=1e-10)
print(f"SciPy's bicgstab with our factors: info {info}")
assert info == 0

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "approximation.mtx"
    wl.write(path, wl.Csr(np.where(abs(approximation) > 1e-14, approximation, 0.0)))
    again = wl.read(path)
    print(f"{path.name}: {again.nnz} entries, A has {A.nnz}")
    assert np.allclose(again.to_dense(), approximation)
