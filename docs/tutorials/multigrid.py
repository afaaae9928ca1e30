# %% [markdown]
# # Multigrid
#
# Equations of diffusion and elasticity have matrices for which multigrid takes nearly the same number of iterations at every
# size. This notebook solves Poisson's equation, reads the hierarchy, and keeps it for new coefficients.

# %%
import numpy as np
import scipy.sparse as sp

import wollemi as wl


def poisson(n):
    """Return the 5-point stencil on n x n points, with zero around them."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    one = sp.eye_array(n)
    return wl.Csr((sp.kron(line, one) + sp.kron(one, line)).tocsr())


A = poisson(200)
b = np.ones(A.shape[0])
A

# %% [markdown]
# ## CG alone, and with multigrid
#
# The number of iterations of CG grows with the number of points in a row. A result that ends a cell shows its card.

# %%
alone = wl.solvers.Cg(A, rtol=1e-8).solve(b)
alone

# %%
solver = wl.solvers.Cg(A, M="amg", rtol=1e-8)
solver.solve(b)

# %%
for n in (50, 100, 200):
    matrix, ones = poisson(n), np.ones(n * n)
    counts = [
        wl.solvers.Cg(matrix, M=M, rtol=1e-8).solve(ones).iterations
        for M in (None, "jacobi", "amg")
    ]
    print(
        f"{n:3} x {n:3}: {counts[0]:4} iterations alone, {counts[1]:4} with Jacobi, {counts[2]:3} with multigrid"
    )

# %% [markdown]
# ## The hierarchy
#
# Each level is a smaller matrix that stands for the slow part of the error. The operator complexity is the number of entries of
# all levels, divided by the entries of the matrix: a cycle costs a few times that many products.

# %%
solver.M

# %% [markdown]
# ## New coefficients
#
# In a time step or a Newton iteration the pattern stays and the values change. `update` keeps the aggregates and computes the
# coarse matrices again, in less time than a new set-up.

# %%
A.update_values(A.data * 2.0)
solver.update()
print(solver.solve(b))

# %% [markdown]
# ## Options
#
# `theta` decides which connections are strong, `cycle` the order of the levels. An option that does not exist is refused, with the
# nearest name.

# %%
strong = wl.solvers.Cg(A, M=wl.preconditioners.Amg(theta=0.1, cycle="W"), rtol=1e-8)
print(strong)
print(strong.solve(b).iterations, "iterations")
try:
    wl.preconditioners.Amg(teta=0.1)
except wl.errors.InvalidArgument as error:
    print(error)

# %% [markdown]
# [Multigrid](../multigrid.md) has smoothers, elasticity and levels of your own.
