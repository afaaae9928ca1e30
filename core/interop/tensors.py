"""Operands that are PyTorch's tensors: the result is one too, and has gradients.

PyTorch is not imported here: who hands over a tensor has done so.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..formats import Csr
from ..formats.mask import Mask


def is_tensor(operand: Any) -> bool:
    """Return whether an operand is a tensor of PyTorch's.

    Examples
    --------
    >>> import numpy as np
    >>> is_tensor(np.ones(3))
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(operand, torch.Tensor)


def differentiable(A: Any, *operands: Any) -> Any:
    """Return the module whose products have gradients, if it takes these operands, or None.

    It takes tensors of real floating-point numbers that are where ``A`` is. Others are arrays
    like any library's, unless they ask for a gradient.
    """
    given = [o for o in operands if o is not None]
    if not given or not all(map(is_tensor, given)):
        return None
    ours = isinstance(A, (Csr, Mask))
    numbers = [*given, A] if ours else given
    real = all("complex" not in str(o.dtype) for o in numbers)
    floating = any(o.dtype.is_floating_point for o in given)
    together = (
        not ours
        or (isinstance(A, Mask) and A._follows)
        or all((o.device.type == "cpu") == (A.executor.xp is np) for o in given)
    )
    if (real and floating and together) or any(o.requires_grad for o in given):
        from . import torch

        return torch
    return None


def in_likeness(result: Any, operand: Any, out: Any = None) -> Any:
    """Return a new result as a tensor where the operand is one, else as it is."""
    if out is not None or not is_tensor(operand):
        return result
    from .torch.memory import tensor_of

    return tensor_of(result)
