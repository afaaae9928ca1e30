"""Solving with an operator that has no matrix, and with a preconditioner that is a function."""

import numpy as np

import wollemi as wl

side = 64


def laplacian(x: np.ndarray) -> np.ndarray:
    """Apply the 5-point stencil to a grid that is zero outside."""
    u = np.pad(x.reshape(side, side), 1)
    return (4 * u[1:-1, 1:-1] - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]).ravel()


n = side * side
L = wl.LinearOperator((n, n), matvec=laplacian, rmatvec=laplacian)
b = np.ones(n)

# operators are added, scaled and multiplied; nothing is computed until they are applied
A = L + 0.1 * wl.Identity(n)
print(A)
result = wl.solvers.Cg(A, rtol=1e-8).solve(b)
print(f"without M: {result.iterations} iterations, {result.reason}")
assert result.converged

# a function may be the preconditioner: here two sweeps of damped Jacobi


def smooth(r: np.ndarray) -> np.ndarray:
    z = 0.2 * r
    return z + 0.2 * (r - laplacian(z) - 0.1 * z)


smoothed = wl.solvers.Cg(A, M=smooth, rtol=1e-8).solve(b)
print(f"with M:    {smoothed.iterations} iterations")
assert smoothed.converged and smoothed.iterations < result.iterations

# SciPy takes our operators, and we take SciPy's
S = A.to_scipy_operator()
assert np.allclose(S @ b, A @ b)
