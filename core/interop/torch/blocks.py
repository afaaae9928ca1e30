"""Kernels on tensors with any leading axes, which are those of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from ...executor import Array
from ...formats import Csr
from ...formats.mask import Mask
from .memory import for_kernels, native_of, numpy_of, on_its_stream


def run(
    operation: Any, A: Csr | Mask, tensors: list[tuple[Tensor | None, int]], *scalars: Any
) -> None:
    """Run a kernel on tensors, each with how many axes of it are not those of the batch."""
    on = A.executor
    blocks = _without_axes(tensors) if on.xp is np else None
    if blocks is not None:
        on.run(operation, A, *blocks, *scalars)
        return
    with on_its_stream(on, next(t for t, _ in tensors if t is not None)):
        for batch in _batches(tensors):
            arrays: list[Array | None] = [
                None if t is None else native_of(on, for_kernels(t, axes))
                for t, (_, axes) in zip(batch, tensors, strict=True)
            ]
            on.run(operation, A, *arrays, *scalars)


def _without_axes(tensors: list[tuple[Tensor | None, int]]) -> list[Array | None] | None:
    """Return tensors of the host without leading axes as batches of one, or None."""
    blocks: list[Array | None] = []
    for t, axes in tensors:
        if t is None:
            blocks.append(None)
        elif t.dim() == axes and t.is_cpu:
            # NumPy adds an axis in a tenth of the time that PyTorch takes.
            made = for_kernels(t, axes)
            blocks.append(numpy_of(made.detach() if made.requires_grad else made)[None])
        else:
            return None
    return blocks


def _batches(tensors: list[tuple[Tensor | None, int]]) -> list[list[Tensor | None]]:
    """Return the operands with one leading axis: in one piece where strides allow it."""
    leading = next(t.dim() - axes for t, axes in tensors if t is not None)
    if leading == 1:
        return [[t for t, _ in tensors]]
    if leading == 0:
        return [[None if t is None else t[None] for t, _ in tensors]]
    try:
        return [[None if t is None else t.view(-1, *t.shape[-axes:]) for t, axes in tensors]]
    except RuntimeError:  # blocks that are not at equal distances
        count = next(t.shape[0] for t, _ in tensors if t is not None)
        parts = ([(None if t is None else t[i], axes) for t, axes in tensors] for i in range(count))
        return [batch for part in parts for batch in _batches(part)]
