"""Refuse functions on tensors that PyTorch's captures (``torch.cuda.graph``) cannot record."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import torch
from torch import Tensor

from ...core.capture import public_call
from ...core.errors import CaptureRefused
from ...core.executor import Executor
from .identities import Seen


def is_captured(operand: object) -> bool:
    """Return whether PyTorch is currently capturing the work on a tensor's device."""
    if torch.compiler.is_compiling() or not isinstance(operand, Tensor):
        return False
    return operand.is_cuda and torch.cuda.is_current_stream_capturing()


def refuse_sharing(executor: Executor) -> None:
    """Raise CaptureRefused in a capture: streams would have to wait for each other."""
    if executor.xp is np or torch.compiler.is_compiling() or not torch.cuda.is_initialized():
        return
    if torch.cuda.is_current_stream_capturing():
        raise CaptureRefused(
            f"{public_call()}: the stream is being captured, and the first call makes objects that "
            "are kept (tensors of the arrays of the matrix). Make this call once before the "
            "capture, with the same matrix"
        )


def refuse_first(tensor: Tensor, call: str, part: str) -> None:
    """Raise CaptureRefused in a capture: the first call makes ``part``, which the host reads."""
    if is_captured(tensor):
        raise CaptureRefused(
            f"{call}: the stream is being captured, and the first call makes kept objects ({part})."
            " Make this call once before the capture, with the same matrix"
        )


#: The calls made so far with the two tensors of a pattern or a mask.
_CALLED = Seen[set[Hashable]]()


def refuse_first_call(places: tuple[Tensor, Tensor], call: str, *operands: Tensor | None) -> None:
    """Raise CaptureRefused in a capture unless an equal call was made before it.

    Functions that start with work of PyTorch call this first: otherwise, a graph would contain that
    work but not the kernels that follow it.

    Parameters
    ----------
    places : tuple of two tensors
        The tensors of a pattern or of a mask.
    call : str
        The name of the function, and the options that select kernels.
    operands : Tensor or None
        The dense operands.
    """
    first, last = places
    if torch.compiler.is_compiling() or not first.is_cuda or first.is_inference():
        return
    if torch._C._len_torch_dispatch_stack():
        return
    records = torch.is_grad_enabled()
    tensors = (x for x in operands if isinstance(x, Tensor))
    given = [(x.dtype, x.shape, records and x.requires_grad) for x in tensors]
    key, known = (call, *given), _CALLED.get(first, last, 0)
    if not torch.cuda.is_current_stream_capturing():
        if known is None:
            _CALLED.add(first, last, 0, known := set())
        known.add(key)
    elif known is None or key not in known:
        raise CaptureRefused(
            f"{call}: the stream is being captured, and the first call makes objects that are kept "
            "(plans of the pattern). Make this call once before the capture, with operands of the "
            "same shapes and dtypes"
        )


def refuse_always(operand: object, call: str, reason: str, remedy: str) -> None:
    """Raise CaptureRefused in a capture: the host takes part in every call."""
    if is_captured(operand):
        raise CaptureRefused(f"{call}: the stream is being captured, and {reason}. {remedy}")


def refuse_solve(operand: object, function: str) -> None:
    """Raise CaptureRefused in a capture: the function solves systems or eigenvalue problems."""
    refuse_always(
        operand,
        f"wollemi.interop.torch.{function}",
        "the host decides when a solve ends",
        "Solve before the capture and copy the solution into a tensor that the graph reads",
    )
