"""Attention along edges with additive scores, as a PyTorch operator.

The forward pass visits the edges once for all heads. The gradients visit them once more, by
columns. Row gradients follow from two sums of the forward pass, because a leaky ReLU has only two
slopes. Derivatives of the gradients use separate operators for the scores, the softmax and the
weighted sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..core.operations import attention as operations
from ..interop.torch import operators
from ..interop.torch.blocks import run
from ..interop.torch.memory import as_rows, for_kernels, native_of, on_its_stream
from ..interop.torch.patterns import matrix_of
from ..interop.torch.register import Operator, define, define_without_derivatives
from ..interop.torch.segments import segment_softmax, segment_sum, softmax_derivative

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch._C import DispatchKeySet

    from ..core.executor import Executor


def _shapes(indptr: Tensor, target: Tensor, D: Tensor) -> list[tuple[int, ...]]:
    """Return the shapes of row sums and of per-row numbers."""
    before = (*D.shape[:-2], indptr.shape[0] - 1)
    return [(*before, D.shape[-1]), (*before, target.shape[-1])]


def _kernel(
    indptr: Tensor, indices: Tensor, target: Tensor, source: Tensor, D: Tensor, slope: float
) -> Tensor:
    out = _fake(indptr, indices, target, source, D, slope)
    _run(indptr, indices, (target, source, D), (out, None, None, None), slope)
    return out


def _fake(
    indptr: Tensor, indices: Tensor, target: Tensor, source: Tensor, D: Tensor, slope: float
) -> Tensor:
    return D.new_empty(_shapes(indptr, target, D)[0])


def _kept_kernel(
    indptr: Tensor, indices: Tensor, target: Tensor, source: Tensor, D: Tensor, slope: float
) -> tuple[Tensor, ...]:
    result = _kept_fake(indptr, indices, target, source, D, slope)
    _run(indptr, indices, (target, source, D), result, slope)
    return result


def _kept_fake(
    indptr: Tensor, indices: Tensor, target: Tensor, source: Tensor, D: Tensor, slope: float
) -> tuple[Tensor, ...]:
    wide, narrow = _shapes(indptr, target, D)
    return tuple(D.new_empty(shape) for shape in (wide, wide, narrow, narrow))


def _run(
    indptr: Tensor,
    indices: Tensor,
    inputs: tuple[Tensor, ...],
    outputs: tuple[Tensor | None, ...],
    slope: float,
) -> None:
    A = matrix_of(indptr, indices, inputs[-1].shape[-2])
    run(operations.csr_additive_attention, A, [(x, 2) for x in (*inputs, *outputs)], slope)


def _gradients_of_rows(
    on: Executor, inputs: Sequence[Tensor], numbers: tuple[int, float], outputs: Sequence[Tensor]
) -> None:
    """Run the operation; in a capture, arrays of tensors are valid only in a submitted call."""
    blocks = [native_of(on, x) for x in (*inputs, *outputs)]
    on.run(operations.row_gradients, *blocks[:4], *numbers, *blocks[4:])


def _gradients_kernel(
    indptr: Tensor,
    indices: Tensor,
    target: Tensor,
    source: Tensor,
    D: Tensor,
    gradient: Tensor,
    out: Tensor,
    positive: Tensor,
    log_totals: Tensor,
    shares: Tensor,
    slope: float,
) -> tuple[Tensor, ...]:
    A = matrix_of(indptr, indices, D.shape[-2])
    result = tuple(x.new_empty(x.shape) for x in (target, source, D))
    of_target, of_source, of_D = result
    means, heads = torch.empty_like(of_target), target.shape[-1]
    gradient, on = for_kernels(gradient, 2), A.executor
    with on_its_stream(on, gradient):
        given = [as_rows(x) for x in (gradient, out, positive, shares)]
        made = [as_rows(x) for x in (means, of_target)]
        numbers = D.shape[-1] // heads, slope
        on.submit(operations.row_gradients.name, A, _gradients_of_rows, on, given, numbers, made)
    operands = (target, source, D, gradient, log_totals, means, of_source, of_D)
    run(operations.csr_additive_attention_backward, A, [(x, 2) for x in operands], slope)
    return result


def _gradients_fake(
    indptr: Tensor, indices: Tensor, target: Tensor, source: Tensor, D: Tensor, *others: Any
) -> tuple[Tensor, ...]:
    return tuple(x.new_empty(x.shape) for x in (target, source, D))


# separate operators, with derivatives of every order


def _by_heads(x: Tensor, heads: int) -> Tensor:
    """Reshape (..., rows, heads * columns) to (..., heads, rows, columns)."""
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def _of_heads(x: Tensor) -> Tensor:
    return x.transpose(-2, -3).flatten(-2)


class _Steps:
    """The scores, weights and slopes of the entries, shape (..., heads, nnz)."""

    def __init__(self, inputs: tuple[Any, ...]) -> None:
        self.indptr, self.indices, target, source, D, self.slope = inputs
        self.heads, self.columns = target.shape[-1], D.shape[-2]
        self.pattern = self.indptr, self.indices
        self.D = _by_heads(D, self.heads)
        z = self.sums(target, source)
        self.slopes = torch.where(z > 0, 1.0, self.slope).to(z.dtype)
        self.weights = segment_softmax(*self.pattern, self.slopes * z, self.columns)

    def sums(self, target: Tensor, source: Tensor) -> Tensor:
        """Return ``target_i + source_j`` for each entry, as a dot product of length 2."""
        of_rows, of_columns = target.transpose(-1, -2), source.transpose(-1, -2)
        left = torch.stack([of_rows, torch.ones_like(of_rows)], -1)
        right = torch.stack([torch.ones_like(of_columns), of_columns], -1)
        return operators.sddmm(*self.pattern, left, right, "auto")

    def derivative(self, t: Tensor) -> Tensor:
        """Return the derivative of the weights by the scores, in direction ``t``; symmetric."""
        return softmax_derivative(*self.pattern, self.weights, t, self.columns)


def _gradients_by_steps(inputs: tuple[Any, ...], gradient: Tensor) -> tuple[Tensor, ...]:
    steps = _Steps(inputs)
    G = _by_heads(gradient, steps.heads)
    of_weights = operators.sddmm(*steps.pattern, G, steps.D, "auto")
    of_z = steps.derivative(of_weights) * steps.slopes
    of_target = segment_sum(*steps.pattern, of_z, steps.columns).transpose(-1, -2)
    ones = G.new_ones(1).expand(*G.shape[:-1], 1)
    backward = (steps.columns, "auto")
    of_source = operators.spmm_transposed(*steps.pattern, of_z, ones, *backward)
    of_D = operators.spmm_transposed(*steps.pattern, steps.weights, G, *backward)
    return of_target, of_source[..., 0].transpose(-1, -2), _of_heads(of_D)


def _backward(
    inputs: tuple[Any, ...], needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> tuple[Any, ...]:
    return None, None, *_gradients_by_steps(inputs, gradient), None


def _kept_backward(
    inputs: tuple[Any, ...], needs_grad: Sequence[bool], out: Any, gradient: Tensor
) -> tuple[Any, ...]:
    if torch.is_grad_enabled() or forward_ad._current_level >= 0:
        return _backward(inputs, needs_grad, out[0], gradient)
    *operands, slope = inputs
    return None, None, *_gradients(*operands, gradient, *out, slope), None


def _jvp(inputs: tuple[Any, ...], tangents: Sequence[Any], out: Tensor) -> Any:
    _, _, of_target, of_source, of_D, _ = tangents
    target, source = inputs[2:4]
    steps = _Steps(inputs)
    by_weights = by_D = None
    if of_target is not None or of_source is not None:
        moved = (
            torch.zeros_like(x) if t is None else t
            for x, t in ((target, of_target), (source, of_source))
        )
        t = steps.derivative(steps.slopes * steps.sums(*moved))
        by_weights = operators.spmm(*steps.pattern, t, steps.D, "auto")
    if of_D is not None:
        moved_D = _by_heads(of_D, steps.heads)
        by_D = operators.spmm(*steps.pattern, steps.weights, moved_D, "auto")
    tangent = operators.sum_of_given(by_weights, by_D)
    return None if tangent is None else _of_heads(tangent)


_SIGNATURE = (
    "(Tensor indptr, Tensor indices, Tensor target, Tensor source, Tensor D, float slope) -> "
)

#: The same as :data:`additive_attention`, with the inputs of its gradients: sums over the entries
#: with positive scores, log-totals of the softmax, and the weights' share on positive scores.
kept: Any = define(
    f"additive_attention_kept{_SIGNATURE}(Tensor, Tensor, Tensor, Tensor)",
    kernel=_kept_kernel,
    fake=_kept_fake,
    backward=_kept_backward,
    jvp=lambda inputs, tangents, out: _jvp(inputs, tangents, out[0]),
    autocast=False,
)


def _recorded(keyset: DispatchKeySet, *inputs: Any) -> Tensor:
    out: Tensor = kept.redispatch(keyset, *inputs)[0]
    return out


#: Sums of rows of ``D``, (..., m, w), weighted by the softmax of ``leaky(target + source)``.
additive_attention: Operator = define(
    f"additive_attention{_SIGNATURE}Tensor",
    kernel=_kernel,
    fake=_fake,
    backward=_backward,
    jvp=_jvp,
    autocast=False,
    recorded=_recorded,
)

_gradients = define_without_derivatives(
    "additive_attention_backward(Tensor indptr, Tensor indices, Tensor target, Tensor source, "
    "Tensor D, Tensor gradient, Tensor out, Tensor positive, Tensor log_totals, Tensor shares, "
    "float slope) -> (Tensor, Tensor, Tensor)",
    kernel=_gradients_kernel,
    fake=_gradients_fake,
)


def attend(pattern: Any, target: Tensor, source: Tensor, D: Tensor, slope: float) -> Tensor:
    """Return weighted sums of the rows of ``D``, shape (m, h, p), in its dtype.

    Parameters
    ----------
    pattern : Pattern
        A pattern with m rows and n columns.
    target, source : Tensor, shapes (m, h) and (n, h)
        The summands of the scores.
    D : Tensor, shape (n, h, p)
        The features to sum; 16-bit features are summed in float32.
    slope : float
        Slope of the leaky ReLU for negative scores.
    """
    heads, dtype = D.shape[-2], D.dtype
    held = torch.promote_types(torch.promote_types(dtype, target.dtype), torch.float32)
    target, source, D = (x.to(held) for x in (target, source, D))
    places = pattern.indptr, pattern.indices
    found = additive_attention(*places, target, source, D.flatten(-2), slope)
    return found.unflatten(-1, (heads, -1)).to(dtype)
