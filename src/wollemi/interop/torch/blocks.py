"""Run kernels on tensors with any leading axes, which form a batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ...core.executor import Array
from ...core.formats import Csr
from ...core.formats.mask import Mask
from ...core.program import recording
from .memory import for_kernels, native_of, numpy_of, on_its_stream

if TYPE_CHECKING:
    from ...core.executor import Executor
    from ...core.operation import Operation

#: A tensor, and the number of its axes without the batch axes.
Given = tuple[Tensor | None, int]

#: A function that repeats launches for tensors at other addresses.
Repeat = Callable[[Sequence[int]], None]

#: Upper bound of cached layouts per pattern: a scalar factor that changes from call to call creates
#: new layouts.
MOST_LAYOUTS = 256


def run(
    operation: Operation, A: Csr | Mask, tensors: Sequence[Given], *scalars: float | str
) -> None:
    """Run a kernel on tensors, given with their numbers of axes without the batch axes."""
    on = A.executor
    if on.xp is np:
        blocks = _without_axes(tensors)
        if blocks is not None:
            on.run(operation, A, *blocks, *scalars)
            return
    elif not on.observed and recording() is None:
        _run_again(operation, A, tensors, scalars)
        return
    with on_its_stream(on, _first(tensors)):
        on.submit(operation.name, A, _run_once, operation, A, tensors, scalars)


def _run_once(
    operation: Operation, A: Csr | Mask, tensors: Sequence[Given], scalars: tuple[Any, ...]
) -> None:
    for arrays in _arrays(A.executor, tensors):
        A.executor.run(operation, A, *arrays, *scalars)


def _run_again(
    operation: Operation, A: Csr | Mask, tensors: Sequence[Given], scalars: tuple[Any, ...]
) -> None:
    """Repeat the launches for other tensors of this layout, reading only their addresses.

    Converting tensors to arrays, and the decisions, take longer than small GPU kernels.
    """
    on, repeats = A.executor, A._pattern.repeats
    addresses = [0 if t is None else t.data_ptr() for t, _ in tensors]
    layout = layout_of(operation, [t for t, _ in tensors], scalars, addresses, on.alignment)
    with on_its_stream(on, _first(tensors)):
        repeat = repeats.get(layout)
        if repeat is not None:
            repeat(addresses)
            return
        repeat = on.submit(operation.name, A, _run_anew, operation, A, tensors, scalars)
    if repeat is not None:
        if len(repeats) >= MOST_LAYOUTS:
            repeats.clear()
        repeats[layout] = repeat


def _run_anew(
    operation: Operation, A: Csr | Mask, tensors: Sequence[Given], scalars: tuple[Any, ...]
) -> Repeat | None:
    """Run a kernel; return a function that repeats its launches on tensors of this layout."""
    on = A.executor
    batches = list(_arrays(on, tensors))
    if len(batches) > 1 or not all(t is None or for_kernels(t, n) is t for t, n in tensors):
        for arrays in batches:
            on.run(operation, A, *arrays, *scalars)
        return None
    (arrays,) = batches
    return on.run_repeatably(operation, (A, *arrays, *scalars), arrays)


def layout_of(
    operation: Operation,
    tensors: Sequence[Tensor | None],
    scalars: tuple[Any, ...],
    addresses: Sequence[int],
    alignment: int,
) -> Hashable:
    """Return everything that a call depends on, besides the pattern and the addresses."""
    return (
        operation,
        scalars,
        *[None if t is None else (t.dtype, t.get_device(), t.shape, t.stride()) for t in tensors],
        *[address % alignment for address in addresses],
        *[addresses.index(address) for address in addresses],
    )


def _first(tensors: Sequence[Given]) -> Tensor:
    return next(t for t, _ in tensors if t is not None)


def _arrays(on: Executor, tensors: Sequence[Given]) -> list[list[Array | None]]:
    """Return the operands of each call as native arrays."""
    return [
        [
            None if t is None else native_of(on, for_kernels(t, axes))
            for t, (_, axes) in zip(batch, tensors, strict=True)
        ]
        for batch in _batches(tensors)
    ]


def _without_axes(tensors: Sequence[Given]) -> list[Array | None] | None:
    """Return host tensors without leading axes as batches of one, or None for other tensors."""
    blocks: list[Array | None] = []
    for t, axes in tensors:
        if t is None:
            blocks.append(None)
        elif t.dim() == axes and t.is_cpu:
            made = t if t.is_contiguous() else for_kernels(t, axes)
            if made.requires_grad:
                made = made.detach()
            array = numpy_of(made) if made.dtype is torch.bfloat16 else made.numpy()
            if not array.flags.aligned:
                array = array.copy()
            blocks.append(array[None])  # takes a tenth of the time of adding an axis in PyTorch
        else:
            return None
    return blocks


def _batches(tensors: Sequence[Given]) -> list[list[Tensor | None]]:
    """Return the operands with one leading axis, as a single block if the strides allow it."""
    leading = next(t.dim() - axes for t, axes in tensors if t is not None)
    if leading == 1:
        return [[t for t, _ in tensors]]
    if leading == 0:
        return [[None if t is None else t[None] for t, _ in tensors]]
    try:
        return [[None if t is None else t.view(-1, *t.shape[-axes:]) for t, axes in tensors]]
    except RuntimeError:  # blocks that are not equally spaced
        count = next(t.shape[0] for t, _ in tensors if t is not None)
        parts = ([(None if t is None else t[i], axes) for t, axes in tensors] for i in range(count))
        return [batch for part in parts for batch in _batches(part)]
