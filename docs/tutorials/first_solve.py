# %% [markdown]
# # A first solve
#
# You have a sparse matrix `S` and a vector `b`, and want `x` with `S x = b`. The matrix is made with SciPy; here it is the
# heat equation on a square of 40 x 40 points.

# %%
# %matplotlib inline
import numpy as np
import scipy.sparse as sp

import wollemi as wl

line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(40, 40))
S = sp.csr_array(sp.kronsum(line, line))
b = np.ones(S.shape[0])

# %% [markdown]
# `wl.solve` looks at the matrix, chooses a method and a preconditioner, and says which.

# %%
result = wl.solve(S, b, rtol=1e-8)
print(result.reason)
for note in result.notes:
    print(note)

# %% [markdown]
# *Converged* is a claim about the true residual `b - A x`, computed after the last iteration. You can check it:

# %%
print(np.linalg.norm(b - S @ result.x) / np.linalg.norm(b))

# %% [markdown]
# A result knows how it got there.

# %%
print(
    result.iterations, "iterations,", len(result.residuals), "norms, the last", result.residuals[-1]
)

# %%
figure = result.plot()
figure

# %% [markdown]
# For many right-hand sides make the matrix and the solver once. A block of right-hand sides is solved at once; each column has
# a verdict of its own.

# %%
A = wl.Csr(S)
solver = wl.solvers.Cg(A, M="jacobi", rtol=1e-8)
block = solver.solve(np.random.default_rng(0).standard_normal((1600, 3)))
print(block.column_iterations, block.converged)

# %% [markdown]
# A system that cannot be solved is not called solved. CG needs a matrix with positive eigenvalues; this one has both signs.

# %%
indefinite = sp.diags_array(np.linspace(-1.0, 1.0, 50)).tocsr()
failed = wl.solve(indefinite, np.ones(50), method="cg", M="none")
print(failed.converged)
print(failed.reason)

# %% [markdown]
# Next: [choosing a method and a preconditioner](choosing.py), or the page [A first solve](../first-solve.md), which has all
# options.
