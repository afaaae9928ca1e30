"""The machine-learning kernels on PyTorch's tensors, with gradients."""

from ..core.interop.torch import fusedmm, pattern_of, sddmm, spmm

__all__ = ["fusedmm", "pattern_of", "sddmm", "spmm"]
