"""Refuse arrays with derivatives that a plain array would lose: of PyTorch, and traced by JAX."""

from __future__ import annotations

import sys
from typing import Any

from .errors import InvalidArgument


def untracked(array: Any, label: str) -> Any:
    """Return a dense tensor without recorded gradients; other objects are unchanged.

    This module imports neither PyTorch nor JAX: a caller that passes their arrays has done so.

    Raises
    ------
    InvalidArgument
        If gradients of the tensor are being recorded, because operators record none; if the tensor
        is sparse; or if JAX is tracing the array.
    """
    _refuse_traced(array, label)
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


def _refuse_traced(array: Any, label: str) -> None:
    """Raise InvalidArgument for an array that JAX is tracing, which has no numbers yet."""
    jax_core = sys.modules.get("jax.core")
    if jax_core is None or not isinstance(array, jax_core.Tracer):
        return
    raise InvalidArgument(
        f"{label}: JAX is tracing this array (jax.jit, grad or vmap), so that it has no numbers "
        "yet, and operators and solvers of wollemi need them. Products within such functions are "
        "wollemi.interop.jax.spmm, sddmm and fusedmm; solutions are wollemi.interop.jax.solve"
    )
