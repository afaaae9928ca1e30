"""Products of machine learning, solves and spectra on PyTorch's tensors, with gradients."""

from ...core.interop.torch import Entries, Pattern, fusedmm, pattern_of, sddmm, spmm
from .determinants import log_determinant
from .least_squares import least_squares
from .solves import solve
from .sparse_products import SparseProduct, galerkin, matmul
from .spectra import eigsh, svds

__all__ = [
    "Entries", "Pattern", "SparseProduct", "eigsh", "fusedmm", "galerkin", "least_squares",
    "log_determinant", "matmul", "pattern_of", "sddmm", "solve", "spmm", "svds",
]  # fmt: skip
