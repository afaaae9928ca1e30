"""Matrices and vectors in files.

The formats are Matrix Market, Harwell-Boeing and Rutherford-Boeing, SciPy's .npz, NumPy's .npy,
MATLAB's .mat, the DLMC's .smtx, and plain text for vectors and dense matrices.

The parsing is SciPy's and NumPy's. This module finds the format of a file, reads it in pieces of
bounded size, checks announced sizes before memory is allocated, and turns every failure into an
error that names the file and the position.
"""

from .files.read import read, read_vector
from .files.write import write

__all__ = ["read", "read_vector", "write"]
