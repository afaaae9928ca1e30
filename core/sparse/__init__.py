"""Constructors of sparse matrices from numbers or other matrices, on the executor.

The functions have the names and signatures of ``scipy.sparse``, plus ``executor=`` at the end.
"""

from .axes import permute_dims, swapaxes
from .blocks import block_array, block_diag, hstack, vstack
from .diagonals import diags, eye
from .kronecker import kron, kronsum
from .random import random
from .triangles import find, tril, triu

__all__ = [
    "block_array",
    "block_diag",
    "diags",
    "eye",
    "find",
    "hstack",
    "kron",
    "kronsum",
    "permute_dims",
    "random",
    "swapaxes",
    "tril",
    "triu",
    "vstack",
]
