"""Matrices and vectors in files: Matrix Market, SciPy's .npz, NumPy's .npy and the DLMC's .smtx.

The parsing is SciPy's and NumPy's. What is here finds out what a file is, reads it in pieces of
bounded size, checks what it announces before memory is allocated for it, and turns every failure
into an error that names the file and the place.
"""

from .files.read import read, read_vector
from .files.write import write

__all__ = ["read", "read_vector", "write"]
