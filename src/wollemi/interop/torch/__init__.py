"""Products of machine learning and solves on PyTorch's tensors, with gradients."""

from ...core.interop.torch import Entries, Pattern, fusedmm, pattern_of, sddmm, spmm
from .solves import solve

__all__ = ["Entries", "Pattern", "fusedmm", "pattern_of", "sddmm", "solve", "spmm"]
