"""Conversion of PyTorch tensors to plain arrays without silent loss of gradients."""

from __future__ import annotations

import sys
from typing import Any

from .errors import InvalidArgument


def untracked(array: Any, label: str) -> Any:
    """Return a dense tensor without recorded gradients; other objects are unchanged.

    This module does not import PyTorch: a caller that passes a tensor has imported it.

    Raises
    ------
    InvalidArgument
        If gradients of the tensor are being recorded, because operators record none; or if the
        tensor is sparse.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return array
    if array.layout is not torch.strided:
        raise InvalidArgument(
            f"{label}: expected a dense tensor, got layout {array.layout}; make it dense with "
            ".to_dense(), or make a matrix of it with wl.Csr(tensor)"
        )
    if not array.requires_grad:
        return array
    if torch.is_grad_enabled():
        raise InvalidArgument(
            f"{label}: this tensor requires a gradient, and operators and solvers record none. "
            "Products with gradients are wollemi.interop.torch.spmm, sddmm and fusedmm; solutions "
            "with gradients are wollemi.interop.torch.solve. Without a gradient, pass "
            "tensor.detach() or call this under torch.no_grad()"
        )
    return array.detach()
