"""Tensors of PyTorch as plain arrays of numbers, where their gradients are not lost silently."""

from __future__ import annotations

import sys
from typing import Any

from .errors import InvalidArgument


def untracked(array: Any, label: str) -> Any:
    """Return a dense tensor that records no gradients; other objects as they are.

    PyTorch is not imported here: who hands over a tensor has done so.

    Raises
    ------
    InvalidArgument
        If gradients of a tensor are recorded at present, since operators record none; or if a
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
