# %% [markdown]
# # Choosing a method and a preconditioner
#
# Two questions decide how long a solve takes: which method fits the matrix, and which preconditioner `M` makes it easy. This
# page asks both of one matrix: diffusion through layers that conduct 1 and 1000.

# %%
# %matplotlib inline
import numpy as np
import scipy.sparse as sp

import wollemi as wl

n = 40
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
layers = np.where(np.arange(n) % 10 < 5, 1.0, 1000.0)
scale = sp.diags_array(np.sqrt(layers))
S = sp.kron(scale @ line @ scale, sp.eye_array(n)) + sp.kron(sp.diags_array(layers), line)
A = wl.Csr(sp.csr_array(S))
b = np.random.default_rng(0).standard_normal(n * n)

# %% [markdown]
# Where are the entries? A picture says more than a number.

# %%
figure = A.plot()
figure

# %% [markdown]
# ## The method
#
# The matrix is symmetric with positive eigenvalues, so CG is the method. It needs the fewest products with the matrix;
# methods for general matrices solve it, too.

# %%
for method in (wl.solvers.Cg, wl.solvers.Minres, wl.solvers.Bicgstab, wl.solvers.Gmres):
    counts = wl.loggers.Counts()
    result = method(A, M="jacobi", rtol=1e-8).solve(b, loggers=[counts])
    print(f"{method.__name__:10s} {counts.applications['A']:5d} products, {result.reason}")

# %% [markdown]
# ## The preconditioner
#
# `M` approximates the inverse of `A`. A better one costs more to make and to apply, and saves iterations. `"amg"` (multigrid)
# is made for matrices like this one.

# %%
results = {}
for M in ("none", "jacobi", "polynomial:degree=4", "ic", "amg"):
    results[M] = wl.solvers.Cg(A, M=M, rtol=1e-8, maxiter=5000).solve(b)
    print(f"{M:20s} {results[M].iterations:5d} iterations")

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(7, 3.5), layout="constrained")
axes = figure.subplots()
for (M, result), dash in zip(results.items(), ("-", "--", "-.", ":", (0, (5, 1))), strict=True):
    axes.semilogy(result.residuals / result.residuals[0], "k", ls=dash, label=M)
axes.set(xlabel="iteration", ylabel="residual, relative", xlim=(0, 250))
axes.legend(frameon=False)
figure

# %% [markdown]
# ## Time decides
#
# Fewer iterations are not always less time. Measure with your matrix, after a first solve that makes the plans.

# %%
import time

for M in ("jacobi", "ic", "amg"):
    began = time.perf_counter()
    solver = wl.solvers.Cg(A, M=M, rtol=1e-8)
    made = time.perf_counter() - began
    solver.solve(b)
    again = min(solver.solve(b).seconds for _ in range(3))
    print(f"{M:8s} set-up {1e3 * made:6.1f} ms, solve {1e3 * again:6.1f} ms")

# %% [markdown]
# [Choosing a solver](../choosing-a-solver.md) has a table of methods, [Preconditioners](../preconditioners.md) one of
# preconditioners.
