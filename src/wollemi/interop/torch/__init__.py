"""Machine learning products, solves and spectra on PyTorch tensors, with gradients."""

from ...core import libraries as _libraries
from . import operands as _operands
from .determinants import log_determinant
from .functions import fusedmm, pattern_of, sddmm, spmm
from .least_squares import least_squares
from .messages import Entries
from .patterns import Pattern
from .solves import solve
from .sparse_products import SparseProduct, galerkin, matmul
from .spectra import eigsh, svds

__all__ = [
    "Entries", "Pattern", "SparseProduct", "eigsh", "fusedmm", "galerkin", "least_squares",
    "log_determinant", "matmul", "pattern_of", "sddmm", "solve", "spmm", "svds",
]  # fmt: skip

_libraries.set_tensor_handler(_operands)
