"""The machine-learning kernels on PyTorch's tensors, with gradients."""

from ..core.interop.torch import Pattern, fusedmm, pattern_of, sddmm, spmm

__all__ = ["Pattern", "fusedmm", "pattern_of", "sddmm", "spmm"]
