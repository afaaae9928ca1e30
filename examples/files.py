"""Matrices and vectors in files."""

import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import wollemi as wl

A = wl.Csr(sp.random_array((50, 50), density=0.1, rng=0) + 10 * sp.eye_array(50))

with tempfile.TemporaryDirectory() as folder:
    # Matrix Market, compressed or not, and SciPy's own format keep every digit
    for name in ("a.mtx", "a.mtx.gz", "a.npz"):
        path = Path(folder) / name
        wl.write(path, A)
        B = wl.read(path)
        assert (B.to_scipy() != A.to_scipy()).nnz == 0
        print(f"{name}: {path.stat().st_size} bytes, {B!r}")

    # vectors too
    b = np.linspace(0, 1, 50)
    wl.write(Path(folder) / "b.mtx", b)
    assert np.array_equal(wl.io.read_vector(Path(folder) / "b.mtx"), b)

    # a malformed file ends in an error that names the position
    broken = Path(folder) / "broken.mtx"
    broken.write_text("%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 4.0\n")
    try:
        wl.read(broken)
    except wl.errors.InvalidMatrix as error:
        print(str(error).replace(folder, "..."))
