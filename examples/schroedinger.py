"""A nonlinear Schroedinger equation by splitting: one complex solve in each time step.

    python examples/schroedinger.py [points] [steps]

i du/dt = -laplace(u) - |u|^2 u on a square. A time step has two parts (Strang splitting): the
nonlinear part turns the phase of each point by itself; the linear part is a Crank-Nicolson step, a
solve with I + i dt/2 L. Both keep the norm of u, which shows how well the systems were solved.
"""

import sys

import numpy as np
import scipy.sparse as sp

import wollemi as wl

points, steps = map(int, sys.argv[1:3] or (48, 40))
dt, width = 2e-3, 6.0

h = width / points
axis = (np.arange(points) - points / 2) * h
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(points, points)) / h**2
L = sp.csr_array(sp.kronsum(line, line))
eye = sp.eye_array(points**2)
implicit = wl.Csr(sp.csr_array(eye + 0.5j * dt * L))
explicit = wl.Csr(sp.csr_array(eye - 0.5j * dt * L))
solver = wl.solvers.Bicgstab(implicit, M="jacobi", rtol=1e-10)

# two pulses that move towards each other
y, x = np.meshgrid(axis, axis, indexing="ij")
left = 2 * np.exp(-((x + 1.2) ** 2) - y**2 + 4j * x)
right = 2 * np.exp(-((x - 1.2) ** 2) - y**2 - 4j * x)
u = (left + right).ravel()

frames, norm, iterations = [abs(u) ** 2], np.linalg.norm(u), 0
for step in range(1, steps + 1):
    u = u * np.exp(0.5j * dt * abs(u) ** 2)
    result = solver.solve(explicit @ u, x0=u)
    assert result.converged, result.reason
    iterations += result.iterations
    u = result.x * np.exp(0.5j * dt * abs(result.x) ** 2)
    if step % (steps // 4) == 0:
        frames.append(abs(u) ** 2)

change = abs(np.linalg.norm(u) / norm - 1)
print(f"{steps} steps with {points * points} complex unknowns")
print(f"{iterations / steps:.1f} iterations of BiCGSTAB a step")
print(f"the norm changed by {change:.1e}")
assert change < 1e-7

try:
    from matplotlib.figure import Figure
except ImportError:
    sys.exit()
figure = Figure(figsize=(10, 2.6), layout="constrained")
for number, (axes, frame) in enumerate(zip(figure.subplots(1, 5), frames, strict=False)):
    axes.imshow(frame.reshape(points, points), cmap="Greys", extent=(-3, 3, -3, 3))
    axes.set_title(f"|u|² at t = {number * (steps // 4) * dt:.3f}", fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])
figure.savefig("schroedinger.png", dpi=110)
