"""Segment operators: sums over each row's entries, expansion of row values, and row softmax.

A segment is a row of a pattern: ``indptr[i]:indptr[i + 1]`` of the last axis. Operators take the
whole pattern, ``indptr, indices, ..., columns``, because it identifies the pattern's prepared data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ...core.operations import products as operations
from .blocks import run
from .memory import as_rows
from .patterns import matrix_of
from .register import Operator, define

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .types import Gradients, Inputs, Tangents


def _spread_kernel(indptr: Tensor, indices: Tensor, r: Tensor, columns: int) -> Tensor:
    if r.device.type == "cpu":  # 25 times faster than indexing by the row of each entry
        counts = np.diff(indptr.detach().numpy())
        # NumPy has no bfloat16; only bits are moved.
        bits = r.detach().view(torch.int16) if r.dtype is torch.bfloat16 else r.detach()
        return torch.from_numpy(np.repeat(bits.numpy(), counts, axis=-1)).view(r.dtype)
    rows = torch.repeat_interleave(indptr.long().diff(), output_size=indices.shape[0])
    return r.index_select(-1, rows)


def _sum_kernel(indptr: Tensor, indices: Tensor, x: Tensor, columns: int) -> Tensor:
    out = _sum_fake(indptr, indices, x, columns)[..., None]
    ones = x.new_ones(1).expand(*x.shape[:-1], columns, 1)
    A = matrix_of(indptr, indices, columns)
    run(operations.csr_spmm, A, [(x, 1), (ones, 2), (out, 2)], 1.0, 0.0, "auto")
    return out[..., 0]


def _max_kernel(indptr: Tensor, indices: Tensor, x: Tensor, columns: int) -> Tensor:
    wide = x.float() if x.dtype.itemsize < 4 else x
    flat = as_rows(wide)
    offsets = as_rows(indptr.long().expand(flat.shape[0], -1))
    found = torch.segment_reduce(flat, "max", offsets=offsets, axis=1)
    return found.reshape(*x.shape[:-1], indptr.shape[0] - 1).to(x.dtype)


def _softmax_kernel(indptr: Tensor, indices: Tensor, s: Tensor, columns: int) -> Tensor:
    out = s.clone(memory_format=torch.contiguous_format)
    run(operations.csr_softmax, matrix_of(indptr, indices, columns), [(out, 1)])
    return out


def _softmax_backward_kernel(
    indptr: Tensor, indices: Tensor, p: Tensor, g: Tensor, columns: int
) -> Tensor:
    out = g.clone(memory_format=torch.contiguous_format)
    A = matrix_of(indptr, indices, columns)
    run(operations.csr_softmax_backward, A, [(p, 1), (out, 1)])
    return out


def _sum_fake(indptr: Tensor, indices: Tensor, x: Tensor, columns: int) -> Tensor:
    return x.new_empty((*x.shape[:-1], indptr.shape[0] - 1))


def _spread_fake(indptr: Tensor, indices: Tensor, r: Tensor, columns: int) -> Tensor:
    return r.new_empty((*r.shape[:-1], indices.shape[0]))


def _like(indptr: Tensor, indices: Tensor, *values: Tensor) -> Tensor:
    return torch.empty_like(values[-2], memory_format=torch.contiguous_format)


def _sum_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    indptr, indices, _, columns = inputs
    return None, None, segment_spread(indptr, indices, gradient, columns), None


def _spread_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    indptr, indices, _, columns = inputs
    return None, None, segment_sum(indptr, indices, gradient, columns), None


def _softmax_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    indptr, indices, _, columns = inputs
    return None, None, softmax_derivative(indptr, indices, out, gradient, columns), None


def _derivative_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    """Return the gradients of each row's ``p (g - <p, g>)``, for p and g."""
    indptr, indices, p, g, columns = inputs
    of_g = softmax_derivative(indptr, indices, p, gradient, columns) if needs_grad[3] else None
    of_p = _of_weights(indptr, indices, p, g, gradient, columns) if needs_grad[2] else None
    return None, None, of_p, of_g, None


def _of_weights(
    indptr: Tensor, indices: Tensor, p: Tensor, g: Tensor, t: Tensor, columns: int
) -> Tensor:
    means, sums = (
        segment_spread(indptr, indices, segment_sum(indptr, indices, p * x, columns), columns)
        for x in (g, t)
    )
    return t * (g - means) - g * sums


def _derivative_jvp(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor | None:
    indptr, indices, p, g, columns = inputs
    _, _, t_p, t_g, _ = tangents
    parts = []
    if t_g is not None:
        parts.append(softmax_derivative(indptr, indices, p, t_g, columns))
    if t_p is not None:
        means, sums = (
            segment_spread(indptr, indices, segment_sum(indptr, indices, x * g, columns), columns)
            for x in (p, t_p)
        )
        parts.append(t_p * (g - means) - p * sums)
    return sum(parts[1:], start=parts[0]) if parts else None


def _shares(indptr: Tensor, indices: Tensor, x: Tensor, largest: Tensor, columns: int) -> Tensor:
    """Return each number's share of its segment's maximum: equal maxima share it."""
    pattern = indptr, indices
    equal = (x == segment_spread(*pattern, largest, columns)).to(x.dtype)
    sums = segment_sum(*pattern, equal, columns)
    return equal / segment_spread(*pattern, sums, columns).clamp(min=1)


def _max_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    indptr, indices, x, columns = inputs
    spread = segment_spread(indptr, indices, gradient, columns)
    return None, None, _shares(indptr, indices, x, out, columns) * spread, None


def _max_jvp(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor:
    indptr, indices, x, columns = inputs
    shares = _shares(indptr, indices, x, out, columns)
    return segment_sum(indptr, indices, shares * tangents[2], columns)


_PATTERN = "Tensor indptr, Tensor indices"

segment_sum: Operator = define(
    f"segment_sum({_PATTERN}, Tensor x, SymInt columns) -> Tensor",
    kernel=_sum_kernel,
    fake=_sum_fake,
    backward=_sum_backward,
    jvp=lambda inputs, t, out: segment_sum(*inputs[:2], t[2], inputs[3]),
    autocast=False,
)

segment_spread: Operator = define(
    f"segment_spread({_PATTERN}, Tensor r, SymInt columns) -> Tensor",
    kernel=_spread_kernel,
    fake=_spread_fake,
    backward=_spread_backward,
    jvp=lambda inputs, t, out: segment_spread(*inputs[:2], t[2], inputs[3]),
    autocast=False,
)

segment_softmax: Operator = define(
    f"segment_softmax({_PATTERN}, Tensor s, SymInt columns) -> Tensor",
    kernel=_softmax_kernel,
    fake=_like,
    backward=_softmax_backward,
    jvp=lambda inputs, t, out: softmax_derivative(*inputs[:2], out, t[2], inputs[3]),
    autocast=False,
)

#: The derivative of the softmax with result ``p`` in direction ``g``: symmetric.
softmax_derivative: Operator = define(
    f"segment_softmax_backward({_PATTERN}, Tensor p, Tensor g, SymInt columns) -> Tensor",
    kernel=_softmax_backward_kernel,
    fake=_like,
    backward=_derivative_backward,
    jvp=_derivative_jvp,
    autocast=False,
)

segment_max: Operator = define(
    f"segment_max({_PATTERN}, Tensor x, SymInt columns) -> Tensor",
    kernel=_max_kernel,
    fake=_sum_fake,
    backward=_max_backward,
    jvp=_max_jvp,
    autocast=False,
)
