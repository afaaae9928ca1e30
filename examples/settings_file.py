"""A solver from a file: the method and its options are data, not code."""

import json
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import wollemi as wl

line = sp.diags_array([-1.2, 2.0, -0.8], offsets=[-1, 0, 1], shape=(40, 40))
A = wl.Csr(sp.csr_array(sp.kronsum(line, line)))
b = np.ones(1600)

# settings are values: they print, compare, and become JSON
settings = wl.solvers.Gmres(
    restart=30,
    rtol=1e-8,
    M=wl.preconditioners.Multiplicative("jacobi", wl.preconditioners.Ilu(level=1)),
)
print(settings)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "solver.json"
    path.write_text(json.dumps(settings.to_dict(), indent=2))
    print(path.read_text())
    read = wl.solvers.read_settings(path)  # `wollemi solve A.mtx --config solver.json` reads it too

assert read == settings
result = read.on(A).solve(b)
print(f"{result.iterations} iterations, {result.reason}")
assert result.converged

# a misspelt option is an error that lists the options
try:
    wl.solvers.from_settings({"solver": "gmres", "restarts": 30})
except wl.errors.InvalidArgument as error:
    print(error)
