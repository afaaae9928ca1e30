"""Sums over the entries of each row, values of rows for each entry, and the softmax of rows.

A segment is a row of a pattern: ``indptr[i]:indptr[i + 1]`` of the last axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .register import Operator, define


def _reduced(indptr: Tensor, x: Tensor, how: str) -> Tensor:
    """Return a reduction of each segment, 16-bit numbers in float32."""
    flat = _wide(x).reshape(-1, x.shape[-1]) if x.dim() != 2 else _wide(x)
    offsets = indptr.long().expand(flat.shape[0], -1).contiguous()
    found = torch.segment_reduce(flat.contiguous(), how, offsets=offsets, axis=1)
    return found.reshape(*x.shape[:-1], indptr.shape[0] - 1)


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype.itemsize < 4 else x


def _spread_kernel(indptr: Tensor, r: Tensor, entries: int) -> Tensor:
    if r.device.type == "cpu":  # 25 times faster than a selection by the row of each entry
        counts = np.diff(indptr.detach().numpy())
        # NumPy has no bfloat16; only its bits are moved.
        bits = r.detach().view(torch.int16) if r.dtype is torch.bfloat16 else r.detach()
        return torch.from_numpy(np.repeat(bits.numpy(), counts, axis=-1)).view(r.dtype)
    rows = torch.repeat_interleave(indptr.long().diff(), output_size=entries)
    return r.index_select(-1, rows)


def _sum_kernel(indptr: Tensor, x: Tensor) -> Tensor:
    return _reduced(indptr, x, "sum").to(x.dtype)


def _softmax_kernel(indptr: Tensor, s: Tensor) -> Tensor:
    entries = s.shape[-1]
    largest = _reduced(indptr, s, "max")
    powers = torch.exp(_wide(s) - _spread_kernel(indptr, largest, entries))
    sums = _spread_kernel(indptr, _reduced(indptr, powers, "sum"), entries)
    return (powers / sums).to(s.dtype)


def _sum_fake(indptr: Tensor, x: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], indptr.shape[0] - 1))


def _spread_fake(indptr: Tensor, r: Tensor, entries: int) -> Tensor:
    return r.new_empty((*r.shape[:-1], entries))


def _sum_backward(inputs: Any, needs: Any, out: Tensor, gradient: Tensor) -> tuple[Any, ...]:
    indptr, x = inputs
    return None, segment_spread(indptr, gradient, x.shape[-1])


def _spread_backward(inputs: Any, needs: Any, out: Tensor, gradient: Tensor) -> tuple[Any, ...]:
    return None, segment_sum(inputs[0], gradient), None


def softmax_derivative(indptr: Tensor, p: Tensor, t: Tensor) -> Tensor:
    """Return the derivative of the softmax with result ``p``, applied to ``t``: symmetric."""
    return p * (t - segment_spread(indptr, segment_sum(indptr, p * t), p.shape[-1]))


def _softmax_backward(inputs: Any, needs: Any, out: Tensor, gradient: Tensor) -> tuple[Any, ...]:
    return None, softmax_derivative(inputs[0], out, gradient)


def _max_kernel(indptr: Tensor, x: Tensor) -> Tensor:
    return _reduced(indptr, x, "max").to(x.dtype)


def _shares(indptr: Tensor, x: Tensor, largest: Tensor) -> Tensor:
    """Return how much of its segment's maximum each number is: equal ones share it."""
    entries = x.shape[-1]
    equal = (x == segment_spread(indptr, largest, entries)).to(x.dtype)
    return equal / segment_spread(indptr, segment_sum(indptr, equal), entries).clamp(min=1)


def _max_backward(inputs: Any, needs: Any, out: Tensor, gradient: Tensor) -> tuple[Any, ...]:
    indptr, x = inputs
    return None, _shares(indptr, x, out) * segment_spread(indptr, gradient, x.shape[-1])


def _max_jvp(inputs: Any, tangents: Any, out: Tensor) -> Tensor:
    indptr, x = inputs
    return segment_sum(indptr, _shares(indptr, x, out) * tangents[1])


segment_sum: Operator = define(
    "segment_sum(Tensor indptr, Tensor x) -> Tensor",
    kernel=_sum_kernel,
    fake=_sum_fake,
    backward=_sum_backward,
    jvp=lambda inputs, tangents, out: segment_sum(inputs[0], tangents[1]),
    autocast=False,
)

segment_spread: Operator = define(
    "segment_spread(Tensor indptr, Tensor r, SymInt entries) -> Tensor",
    kernel=_spread_kernel,
    fake=_spread_fake,
    backward=_spread_backward,
    jvp=lambda inputs, tangents, out: segment_spread(inputs[0], tangents[1], inputs[2]),
    autocast=False,
)

segment_softmax: Operator = define(
    "segment_softmax(Tensor indptr, Tensor s) -> Tensor",
    kernel=_softmax_kernel,
    fake=lambda indptr, s: torch.empty_like(s, memory_format=torch.contiguous_format),
    backward=_softmax_backward,
    jvp=lambda inputs, tangents, out: softmax_derivative(inputs[0], out, tangents[1]),
    autocast=False,
)

segment_max: Operator = define(
    "segment_max(Tensor indptr, Tensor x) -> Tensor",
    kernel=_max_kernel,
    fake=_sum_fake,
    backward=_max_backward,
    jvp=_max_jvp,
    autocast=False,
)
