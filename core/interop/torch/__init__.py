"""The products of machine learning on PyTorch's tensors; imported when it is asked for."""

from .functions import fusedmm, pattern_of, sddmm, spmm
from .patterns import Pattern

__all__ = ["Pattern", "fusedmm", "pattern_of", "sddmm", "spmm"]
