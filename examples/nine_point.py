"""A nine-point stencil on a square with given values on its rim, assembled by arrays."""

import sys

import numpy as np
import scipy.sparse as sp

import wollemi as wl

side = 40
axis = np.linspace(0, 1, side + 2)
rim = np.add.outer(np.sin(2 * np.pi * axis), axis**2)  # only its outermost values are used

# h^2 times the Laplacian, fourth order for harmonic functions (the weights sum to zero)
weights = np.array([[1.0, 4.0, 1.0], [4.0, -20.0, 4.0], [1.0, 4.0, 1.0]]) / -6.0

number = np.full((side + 2, side + 2), -1)
number[1:-1, 1:-1] = np.arange(side * side).reshape(side, side)
rows, columns, values = [], [], []
b = np.zeros((side, side))
for i in range(3):
    for j in range(3):
        here, there = number[1:-1, 1:-1], number[i : i + side, j : j + side]
        inside = there >= 0
        rows.append(here[inside])
        columns.append(there[inside])
        values.append(np.full(inside.sum(), weights[i, j]))
        b -= np.where(inside, 0.0, weights[i, j] * rim[i : i + side, j : j + side])
entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
A = wl.Csr(sp.csr_array(entries, shape=(side * side, side * side)))
print(A)

result = wl.solvers.Cg(A, M="ic", rtol=1e-10).solve(b.ravel())
print(f"{result.iterations} iterations, {result.reason}")
assert result.converged

# a harmonic function has its extremes on the rim
u = rim.copy()
u[1:-1, 1:-1] = result.x.reshape(side, side)
edge = np.concatenate([rim[0], rim[-1], rim[:, 0], rim[:, -1]])
assert edge.min() < u[1:-1, 1:-1].min() and u[1:-1, 1:-1].max() < edge.max()

try:
    from matplotlib.figure import Figure
except ImportError:
    sys.exit()
figure = Figure(figsize=(4.6, 3.8), layout="constrained")
axes = figure.subplots()
axes.contour(axis, axis, u, 15, colors="k", linewidths=0.7)
figure.colorbar(axes.contourf(axis, axis, u, 15, cmap="Greys"), label="u")
axes.set(title="u is given on the rim", xlabel="x", ylabel="y", aspect="equal")
figure.savefig("nine-point.png", dpi=110)
