# %% [markdown]
# # A stiff chemistry step in 10,000 cells
#
# A flow code advances the reactions of every cell on its own. An implicit step solves one small linear system a cell, all with the
# same pattern: a batch. This notebook makes one step in 10,000 cells, reads the verdict of each cell, and shows where a
# flame costs iterations.

# %%
# %matplotlib inline
import numpy as np

import wollemi as wl

rng = np.random.default_rng(1)
side, species, reactions = 100, 24, 60
cells = side * side

# %% [markdown]
# ## The reactions
#
# Each reaction takes two species and gives two others, with the rate $k\,c_i c_j$ and Arrhenius' law $k = a\,e^{-E / T}$. A flame crosses
# the square: it is cold on the left, hot on the right.

# %%
i, j, p, q = rng.integers(species, size=(4, reactions))
factor = 10 ** rng.uniform(2, 4, reactions)
energy = rng.uniform(1000, 8000, reactions)

across, along = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side))
front = 0.5 + 0.15 * np.sin(2 * np.pi * along)
temperature = (400 + 1600 / (1 + np.exp(-(across - front) / 0.04))).ravel()
k = factor * np.exp(-energy / temperature[:, None])


def change(c):
    """Return the rates of change of all species, shape (cells, species)."""
    rate = k * c[:, i] * c[:, j]
    made = np.zeros_like(c)
    for to, sign in ((i, -1), (j, -1), (p, 1), (q, 1)):
        np.add.at(made.T, to, sign * rate.T)
    return made


# %% [markdown]
# ## One pattern, many values
#
# The derivative of the rates has an entry where a species takes part in a reaction that changes another one. The pattern is
# found once. Values of shape `(cells, entries)` make the batch.

# %%
rows = np.concatenate([to for to in (i, j, p, q) for _ in range(2)])
columns = np.concatenate([by for _ in range(4) for by in (i, j)])
inside = np.eye(species, dtype=bool)
inside[rows, columns] = True
indptr = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
indices = np.nonzero(inside)[1]
place = np.full((species, species), -1)
place[inside] = np.arange(indices.size)


def matrices(c, dt):
    """Return the values of 1 - dt J(c) for all cells."""
    by_i, by_j = k * c[:, j], k * c[:, i]  # derivatives by c_i and by c_j
    data = np.zeros((indices.size, cells))
    for to, sign in ((i, -1), (j, -1), (p, 1), (q, 1)):
        np.add.at(data, place[to, i], -dt * sign * by_i.T)
        np.add.at(data, place[to, j], -dt * sign * by_j.T)
    data[place.diagonal()] += 1
    return np.ascontiguousarray(data.T)


c = rng.uniform(0.1, 1.0, (cells, species))
dt = 1e-3
A = wl.Csr((matrices(c, dt), indices, indptr), shape=(species, species))
A

# %% [markdown]
# ## A step of implicit Euler
#
# Newton's method solves $c - c_0 - \Delta t\, f(c) = 0$ in all cells. `update_values` gives the solver the matrices of the new iterate.

# %%
solver = wl.solvers.Bicgstab(A, M="jacobi", rtol=1e-8)
start, most = c.copy(), []
for _ in range(4):
    residual = c - start - dt * change(c)
    print(f"largest residual of Newton's method: {abs(residual).max():.1e}")
    A.update_values(matrices(c, dt))
    result = solver.solve(-residual)
    c = c + result.x
    most.append(result.iterations)
result

# %% [markdown]
# Every cell has its own verdict: a cell that fails would say why, and leave the others as they are. `require_converged()`
# raises an error if there is one.

# %%
result.require_converged()
print(result.converged.sum(), "cells;", np.unique(result.reason))

# %% [markdown]
# ## Iterations of each cell
#
# Cold cells end after one or two iterations, hot ones take many. A block-diagonal matrix would iterate in all cells until the slowest has
# converged; a batch frees the place of each cell that is done.

# %%
from matplotlib.figure import Figure

figure = Figure((9, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
shown = left.imshow(temperature.reshape(side, side), origin="lower", cmap="inferno")
left.set_title("temperature, K")
figure.colorbar(shown, ax=left)
shown = right.imshow(most[0].reshape(side, side), origin="lower", cmap="viridis")
right.set_title("iterations of the first solve")
figure.colorbar(shown, ax=right)
figure

# %%
first = most[0]
print(f"iterations: {first.min()} to {first.max()}, mean {first.mean():.1f}")
print(f"a block-diagonal matrix would take {first.max() / first.mean():.1f} times the iterations")

# %% [markdown]
# ## Factors instead
#
# Systems of this size have a direct solver too, which takes the same time in every cell.

# %%
direct = wl.solvers.Direct(A, rtol=1e-8)
print(direct.solve(-residual))
print(direct.notes)

# %% [markdown]
# More about batches, and when a block-diagonal matrix is better: [batches](../batches.md).
