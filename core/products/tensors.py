"""Operands that are PyTorch tensors: the result is a tensor too, and has gradients.

This module does not import PyTorch: a caller that passes a tensor has imported it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from ..formats import Csr
from ..formats.mask import Mask
from ..libraries import loaded_tensor_handler, tensor_handler

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..executor import Array
    from ..libraries import PatternOfTensors, TensorHandler

#: The complex dtypes of matrices.
_COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))


def is_tensor(operand: object) -> bool:
    """Return whether an operand is a PyTorch tensor.

    Examples
    --------
    >>> import numpy as np
    >>> is_tensor(np.ones(3))
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(operand, torch.Tensor)


def is_pattern(operand: object) -> TypeGuard[PatternOfTensors]:
    """Return whether an operand is a :class:`wollemi.interop.torch.Pattern` of tensors."""
    handler = loaded_tensor_handler()
    return handler is not None and isinstance(operand, handler.Pattern)


def known_product(A: object, B: object, alpha: object, beta: object) -> Any:
    """Return ``A @ B`` for a tensor like that of an earlier product, or None; the fast path."""
    torch_there = sys.modules.get("torch")
    if torch_there is None or type(B) is not torch_there.Tensor:
        return None
    if torch_there.compiler.is_compiling():
        return tensor_handler().spmm_traced(A, B, alpha, beta)
    handler = loaded_tensor_handler()
    return None if handler is None else handler.spmm_again(A, B, alpha, beta)


def differentiable(A: object, *operands: ArrayLike | None) -> TensorHandler | None:
    """Return the handler with differentiable products for these operands, or None.

    It accepts real floating-point tensors on the device of ``A``. Other tensors are treated like
    any library's arrays, unless they require a gradient.
    """
    torch_there = sys.modules.get("torch")
    if torch_there is None:
        return None
    there = floating = asks = False
    real = together = True
    # All calls run this code, and PyTorch's compiler adds a guard for each name in it: use one
    # loop.
    matrix = A if isinstance(A, (Csr, Mask)) else None
    on_host = matrix is not None and matrix.executor.xp is np
    for operand in operands:
        if operand is None:
            continue
        if not isinstance(operand, torch_there.Tensor):
            return None
        there = True
        dtype = operand.dtype
        floating = floating or dtype.is_floating_point
        real = real and not dtype.is_complex
        together = together and operand.is_cpu == on_host
        asks = asks or operand.requires_grad
    if matrix is not None:
        real = real and matrix.dtype not in _COMPLEX
        together = together or (isinstance(matrix, Mask) and matrix._follows)
    else:
        together = True
    if there and ((real and floating and together) or asks):
        return tensor_handler()
    return None


def in_likeness(result: Array, operand: ArrayLike, out: Array | None = None) -> Array:
    """Return a new result as a tensor if the operand is one, otherwise unchanged."""
    if out is not None or not is_tensor(operand):
        return result
    return tensor_handler().tensor_of(result)
