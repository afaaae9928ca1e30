"""Functions on tensors that PyTorch's captures (``torch.cuda.graph``) cannot record."""

from __future__ import annotations

import torch
from torch import Tensor

from ...core.errors import CaptureRefused


def is_captured(tensor: Tensor) -> bool:
    """Return whether PyTorch's work on a tensor is recorded at present."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def refuse_first(tensor: Tensor, call: str, part: str) -> None:
    """Raise CaptureRefused in a capture: the first call makes ``part``, which the host reads."""
    if is_captured(tensor):
        raise CaptureRefused(
            f"{call}: the stream is being captured, and the first call makes kept objects ({part})."
            " Make this call once before the capture, with the same matrix"
        )


def refuse_always(tensor: Tensor, call: str, reason: str, remedy: str) -> None:
    """Raise CaptureRefused in a capture: the host takes part in each call."""
    if is_captured(tensor):
        raise CaptureRefused(f"{call}: the stream is being captured, and {reason}. {remedy}")
