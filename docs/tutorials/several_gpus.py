# %% [markdown]
# # Several GPUs
#
# The rows of a matrix are shared among *members*: all GPUs of a machine, executors of the CPU, or ranks of MPI. The program
# stays the same. Where there are not two GPUs, this page takes two members on the CPU.

# %%
import numpy as np
import scipy.sparse as sp

import wollemi as wl

gpus = [e.name for e in wl.available_executors() if e.available and e.name.startswith("cuda")]
members = gpus if len(gpus) > 1 else ["omp:1", "omp:1"]
print("This page was run on", members)

# %%
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(60, 60))
S = sp.csr_array(sp.kronsum(line, line))
A = wl.distribute(S, members)
A

# %% [markdown]
# ## Whole vectors in, whole vectors out

# %%
b = np.ones(S.shape[0])
result = wl.solve(A, b, rtol=1e-8)
print(result)
print(np.linalg.norm(b - S @ result.x) / np.linalg.norm(b))

# %% [markdown]
# ## Parts stay where they are
#
# For many solves leave the vectors with the members: `scatter` shares a vector, a product or a solve of parts gives parts,
# `gather` brings them back.

# %%
parts = A.scatter(b)
solver = wl.solvers.Cg(A, M="jacobi", rtol=1e-8)
x = solver.solve(parts).x
print(type(x).__name__, A.gather(x)[:3])

# %% [markdown]
# ## Preconditioners within members
#
# `"schwarz:inner=ic"` factorizes the rows of each member by itself: nothing is exchanged. With more members it needs more
# iterations.

# %%
for count in (1, 2, 4):
    B = wl.distribute(S, ["omp:1"] * count)
    found = wl.solvers.Cg(B, M="schwarz:inner=ic", rtol=1e-8).solve(b)
    print(count, "members:", found.iterations, "iterations")

# %% [markdown]
# ## The same bits for any number of members
#
# Sums depend on their order. A reproducible group fixes it:

# %%
answers = []
for count in (1, 2, 3):
    group = wl.distributed.Group(["omp:1"] * count, reproducible=True)
    answers.append(wl.solvers.Cg(wl.distribute(S, group), rtol=1e-8).solve(b).x)
print([bool(np.array_equal(answers[0], answer)) for answer in answers])

# %% [markdown]
# On a cluster `wl.distributed.world()` is the group of all ranks: [Several devices, and clusters](../distributed.md).
