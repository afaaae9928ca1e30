"""A Poisson equation on a line with a known solution: how the error falls with the width."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

import wollemi as wl


def solve(points: int) -> float:
    """Return the largest error of -u'' = f with u = sin(pi x) + x as its solution."""
    h = 1 / (points + 1)
    x = h * np.arange(1, points + 1)
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(points, points))
    A = wl.Csr(sp.csr_array(line / h**2))
    b = np.pi**2 * np.sin(np.pi * x)
    b[-1] += 1 / h**2  # u(1) = 1 is known, so it goes to the right-hand side
    result = wl.solvers.Cg(A, rtol=1e-12).solve(b)
    assert result.converged, result.reason
    return float(abs(result.x - np.sin(np.pi * x) - x).max())


print("points   largest error")
errors = []
for points in (15, 31, 63, 127):
    errors.append(solve(points))
    print(f"{points:6d}   {errors[-1]:.2e}")
rates = [a / b for a, b in pairwise(errors)]
print("half of the width divides the error by", ", ".join(f"{rate:.2f}" for rate in rates))
assert all(3.8 < rate < 4.2 for rate in rates)
