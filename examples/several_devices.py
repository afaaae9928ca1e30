"""One system on several devices: its rows are shared, and the program stays as it was.

    python examples/several_devices.py [members]

Members may be "cuda:*" (every GPU), or executors of the host as here. `mpiexec` runs the same over
ranks: see docs/distributed.md.
"""

import sys

import numpy as np
import scipy.sparse as sp

import wollemi as wl

gpus = [found.name for found in wl.available_executors() if found.available]
gpus = [name for name in gpus if name.startswith("cuda:")]
members = sys.argv[1].split(",") if len(sys.argv) > 1 else gpus
members = members if len(members) > 1 else ["omp:1", "omp:1"]
print("members:", ", ".join(members))

line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(60, 60))
S = sp.csr_array(sp.kronsum(line, line))
b = np.ones(3600)

A = wl.distribute(S, members)
print(A)
alone = wl.solvers.Cg(wl.Csr(S), rtol=1e-8).solve(b)
shared = wl.solvers.Cg(A, rtol=1e-8).solve(b)
schwarz = wl.solvers.Cg(A, M="schwarz:inner=ic", rtol=1e-8).solve(b)
print(f"one executor: {alone.iterations} iterations")
print(f"{len(members)} members: {shared.iterations} iterations")
print(f"with an incomplete factorization on each member: {schwarz.iterations} iterations")
assert shared.converged and schwarz.converged
assert np.allclose(shared.x, alone.x, rtol=1e-5)
