"""Small matrices and vectors, and operators made of them."""

import numpy as np

import wollemi as wl

D = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
E = np.array([[0.0, 1.0, 1.0], [5.0, 0.0, 0.0]])
Z = np.array([[1 + 1j, 0, 2], [0, 3j, 0]])
X, X2 = np.array([1.0, 10.0, 100.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def lazy(array):
    """Return an operator that is no matrix, so that nothing is computed at once."""
    return wl.LinearOperator(
        array.shape,
        matvec=lambda x: array @ x,
        rmatvec=lambda x: array.conj().T @ x,
        dtype=array.dtype,
    )
