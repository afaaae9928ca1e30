"""The products of machine learning on PyTorch's tensors; imported when it is asked for."""

from .functions import fusedmm, pattern_of, sddmm, spmm
from .messages import Entries
from .patterns import Pattern

__all__ = ["Entries", "Pattern", "fusedmm", "pattern_of", "sddmm", "spmm"]
