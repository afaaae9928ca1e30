"""The products of sparse and dense matrices as PyTorch operators.

Gradients use the same kernels, on the pattern and on its transpose, which is made once: no array
has the size of a dense ``m x n`` matrix. Derivatives of spmm, of its transpose and of sddmm consist
of these three operators, so they exist to every order.

All floating-point operands of one call have one dtype and the same leading axes, of any number.
Heads of attention may be strided views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...core.operations import products as operations
from .blocks import run
from .gradients import fusedmm_gradients, has_kernel, log_totals_like, saves_log_totals
from .memory import for_kernels
from .patterns import Pattern, matrix_of, transposed_of
from .register import DEVICES, LIBRARY, Operator, define
from .segments import (
    segment_max,
    segment_softmax,
    segment_spread,
    segment_sum,
    softmax_derivative,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch._C import DispatchKeySet
    from torch._ops import OpOverload

    from .types import Gradients, Inputs, OperatorArgument, Tangents

# ---- kernels


def _spmm_kernel(indptr: Tensor, indices: Tensor, values: Tensor, B: Tensor, kernel: str) -> Tensor:
    A = matrix_of(indptr, indices, B.shape[-2])
    out = _spmm_fake(indptr, indices, values, B, kernel)
    run(operations.csr_spmm, A, [(values, 1), (B, 2), (out, 2)], 1.0, 0.0, kernel)
    return out


def _transposed_kernel(
    indptr: Tensor, indices: Tensor, values: Tensor, B: Tensor, columns: int, kernel: str
) -> Tensor:
    transposed, order = transposed_of(matrix_of(indptr, indices, columns))
    values = values.index_select(-1, order)
    out = _transposed_fake(indptr, indices, values, B, columns, kernel)
    run(operations.csr_spmm, transposed, [(values, 1), (B, 2), (out, 2)], 1.0, 0.0, kernel)
    return out


def _sddmm_kernel(indptr: Tensor, indices: Tensor, C: Tensor, B: Tensor, kernel: str) -> Tensor:
    A = matrix_of(indptr, indices, B.shape[-2])
    out = _sddmm_fake(indptr, indices, C, B, kernel)
    run(operations.csr_sddmm, A, [(None, 1), (C, 2), (B, 2), (out, 1)], 1.0, 0.0, kernel)
    return out


def _fusedmm_kernel(
    indptr: Tensor,
    indices: Tensor,
    values: Tensor | None,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    edge: str,
    alpha: float,
    kernel: str,
) -> Tensor:
    A = matrix_of(indptr, indices, B.shape[-2])
    out = attended(C, D)
    operands = [(values, 1), (C, 2), (B, 2), (D, 2), (out, 2)]
    run(operations.csr_fusedmm, A, operands, alpha, edge, kernel)
    return out


def _softmax_kernel(
    indptr: Tensor,
    indices: Tensor,
    values: Tensor | None,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    alpha: float,
    kernel: str,
) -> tuple[Tensor, Tensor]:
    A = matrix_of(indptr, indices, B.shape[-2])
    result = attended_by_softmax(C, D)
    operands = [(values, 1), (C, 2), (B, 2), (D, 2), *zip(result, (2, 1), strict=True)]
    run(operations.csr_fusedmm_softmax, A, operands, alpha, kernel)
    return result


# ---- shapes of results


def _spmm_fake(indptr: Tensor, indices: Tensor, values: Tensor, B: Tensor, kernel: str) -> Tensor:
    return B.new_empty((*B.shape[:-2], indptr.shape[0] - 1, B.shape[-1]))


def _transposed_fake(
    indptr: Tensor, indices: Tensor, values: Tensor, B: Tensor, columns: int, kernel: str
) -> Tensor:
    return B.new_empty((*B.shape[:-2], columns, B.shape[-1]))


def _sddmm_fake(indptr: Tensor, indices: Tensor, C: Tensor, B: Tensor, kernel: str) -> Tensor:
    return C.new_empty((*C.shape[:-2], indices.shape[0]))


def attended(C: Tensor, D: Tensor) -> Tensor:
    """Return an empty result of fusedmm."""
    return C.new_empty((*C.shape[:-1], D.shape[-1]))


def attended_by_softmax(C: Tensor, D: Tensor) -> tuple[Tensor, Tensor]:
    """Return empty results of fusedmm with softmax: the result and its log-totals."""
    return attended(C, D), log_totals_like(C)


# ---- derivatives: y = A(v) B, z = A(v)^T B, s = sampled C B^T are linear in each operand


def sum_of_given(*terms: Tensor | None) -> Any:
    """Return the sum of the terms that are not None, or None if all are."""
    given = [term for term in terms if term is not None]
    return sum(given[1:], start=given[0]) if given else None


def _spmm_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    indptr, indices, values, B, _ = inputs
    d_values = sddmm(indptr, indices, gradient, B, "auto") if needs_grad[2] else None
    n = B.shape[-2]
    d_B = spmm_transposed(indptr, indices, values, gradient, n, "auto") if needs_grad[3] else None
    return None, None, d_values, d_B, None


def _bilinear_jvp(
    product: Operator, inputs: Inputs, tangents: Tangents, out: Tensor
) -> Tensor | None:
    """Return the tangent of a product that is linear in each of its two operands."""
    indptr, indices, first, second, *rest = inputs
    _, _, t_first, t_second, *_ = tangents
    return sum_of_given(
        None if t_first is None else product(indptr, indices, t_first, second, *rest),
        None if t_second is None else product(indptr, indices, first, t_second, *rest),
    )


def _transposed_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    indptr, indices, values, B, _, _ = inputs
    d_values = sddmm(indptr, indices, B, gradient, "auto") if needs_grad[2] else None
    d_B = spmm(indptr, indices, values, gradient, "auto") if needs_grad[3] else None
    return None, None, d_values, d_B, None, None


def _sddmm_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    indptr, indices, C, B, _ = inputs
    d_C = spmm(indptr, indices, gradient, B, "auto") if needs_grad[2] else None
    n = B.shape[-2]
    d_B = spmm_transposed(indptr, indices, gradient, C, n, "auto") if needs_grad[3] else None
    return None, None, d_C, d_B, None


def edge_weights(pattern: Pattern, edge: str, s: Tensor) -> Tensor:
    """Return f(s) for the entries of each row."""
    if edge == "sigmoid":
        return torch.sigmoid(s)
    if edge == "softmax":
        return segment_softmax(pattern.indptr, pattern.indices, s, pattern.shape[1])
    return s


def _edge_derivative(pattern: Pattern, edge: str, p: Tensor, t: Tensor) -> Tensor:
    """Return the derivative of an edge function with result ``p`` in direction ``t``; symmetric."""
    if edge == "sigmoid":
        return t * p * (1 - p)
    if edge == "softmax":
        return softmax_derivative(pattern.indptr, pattern.indices, p, t, pattern.shape[1])
    return t


def _widened(inputs: Inputs) -> list[Any]:
    """Return operands with all floating-point operands converted to float32."""
    return [x.float() if isinstance(x, Tensor) and x.is_floating_point() else x for x in inputs]


def _less_by_rows(indptr: Tensor, indices: Tensor, C: Tensor, B: Tensor, rows: Tensor) -> Tensor:
    """Return ``<C_i, B_j> - rows_i`` for each entry."""
    if C.is_cpu:
        # Computing the difference with one more column would not fill a register and would copy the
        # operands into padded ones: half as much again for 64 columns. A pass over the entries
        # takes a tenth.
        spread = segment_spread(indptr, indices, rows[..., 0], B.shape[-2])
        dots = sddmm(indptr, indices, C, B, "auto")
        return dots - spread if torch.is_grad_enabled() else dots.sub_(spread)
    left = torch.cat([C, -rows], -1)
    right = torch.cat([B, B.new_ones((*B.shape[:-1], 1))], -1)
    return sddmm(indptr, indices, left, right, "auto")


def _attention_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor | None, gradient: Tensor
) -> Gradients:
    """Return the gradients of attention with few passes over arrays of entries.

    Weights are ``exp(s - largest)`` divided by their row's total. The division is applied to the
    rows of a dense operand, which are fewer than the entries. The number subtracted in each row of
    the weights' gradients is ``<gradient_i, out_i>`` (Dao et al., *FlashAttention*, 2022, appendix
    B.2).
    """
    indptr, indices, values, C, B, D, _, alpha, _ = inputs
    _, _, of_values, of_C, of_B, of_D, *_ = needs_grad
    pattern, n = (indptr, indices), B.shape[-2]
    queries = alpha * C
    dots = sddmm(*pattern, queries, B, "auto")
    # Overwrite temporaries unless derivatives of this computation may follow: new arrays of entries
    # cost more than the arithmetic on them.
    over = not torch.is_grad_enabled()
    s = dots if values is None else dots * values
    # A constant, because weights do not depend on a number subtracted from all scores of a row.
    # Subtracting minus infinity from itself would give NaN.
    largest = segment_max(*pattern, s.detach(), n)
    largest = largest.masked_fill(largest == -torch.inf, 0)
    spread = segment_spread(*pattern, largest, n)
    powers = s.sub_(spread).exp_() if over else torch.exp(s - spread)
    totals = segment_sum(*pattern, powers, n)[..., None]
    totals = torch.where(totals > 0, totals, 1)  # rows in which all weights are 0
    shares = gradient / totals
    d_D = spmm_transposed(*pattern, powers, shares, n, "auto") if of_D else None
    if not (of_values or of_C or of_B):
        return (None,) * 5 + (d_D, None, None, None)
    if out is None:
        out = spmm(*pattern, powers, D, "auto") / totals
    d_p = _less_by_rows(indptr, indices, shares, D, (shares * out).sum(-1, keepdim=True))
    d_s = d_p.mul_(powers) if over else d_p * powers
    d_values = d_s * dots if of_values else None
    d_dots = d_s if values is None else d_s * values
    d_C = alpha * spmm(*pattern, d_dots, B, "auto") if of_C else None
    d_B = spmm_transposed(*pattern, d_dots, queries, n, "auto") if of_B else None
    return None, None, d_values, d_C, d_B, d_D, None, None, None


def fusedmm_backward_of(
    inputs: Inputs,
    needs_grad: Sequence[bool],
    out: Tensor | None,
    gradient: Tensor,
    log_totals: Tensor | None = None,
) -> Gradients:
    """Return the gradient of each argument, or None where there is none."""
    narrow = inputs[3].dtype
    if has_kernel(gradient):
        return fusedmm_gradients(inputs, needs_grad, gradient, out, log_totals)
    if narrow.itemsize < 4 and gradient.device.type == "cpu":
        # Scores, weights and their gradients are float32: rounded to 16 bits, they made gradients 2
        # to 3 times less accurate than PyTorch's dense attention. The host's kernels widen their
        # operands in any case; GPU kernels are faster on 16 bits.
        found = fusedmm_backward_of(_widened(inputs), needs_grad, None, gradient.float())
        return tuple(None if x is None else x.to(narrow) for x in found)
    if inputs[6] == "softmax" and narrow.itemsize >= 4:
        return _attention_backward(inputs, needs_grad, out, gradient)
    indptr, indices, values, C, B, D, edge, alpha, _ = inputs
    _, _, of_values, of_C, of_B, of_D, *_ = needs_grad
    pattern, n = (indptr, indices), B.shape[-2]
    of_rows = Pattern(indptr, indices, (C.shape[-2], n))
    # Recompute the samples that the forward pass did not keep: s, then p = f(s).
    dots = sddmm(*pattern, C, B, "auto")
    s = alpha * dots if values is None else alpha * dots * values
    p = edge_weights(of_rows, edge, s)
    d_D = spmm_transposed(*pattern, p, gradient, n, "auto") if of_D else None
    if not (of_values or of_C or of_B):
        return (None,) * 5 + (d_D, None, None, None)
    d_p = sddmm(*pattern, gradient, D, "auto")
    d_s = _edge_derivative(of_rows, edge, p, d_p)
    d_values = alpha * d_s * dots if of_values else None
    d_dot = alpha * d_s if values is None else alpha * d_s * values
    d_C = spmm(*pattern, d_dot, B, "auto") if of_C else None
    d_B = spmm_transposed(*pattern, d_dot, C, n, "auto") if of_B else None
    return None, None, d_values, d_C, d_B, d_D, None, None, None


def fusedmm_jvp_of(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor | None:
    """Return the tangent of the result of ``fusedmm``."""
    indptr, indices, values, C, B, D, edge, alpha, _ = inputs
    _, _, t_values, t_C, t_B, t_D, *_ = tangents
    pattern = (indptr, indices)
    of_rows = Pattern(indptr, indices, (C.shape[-2], B.shape[-2]))
    dots = sddmm(*pattern, C, B, "auto")
    t_dots = _bilinear_jvp(sddmm, (*pattern, C, B, "auto"), (None, None, t_C, t_B, None), dots)
    if values is None:
        s, t_s = alpha * dots, None if t_dots is None else alpha * t_dots
    else:
        s = alpha * dots * values
        t_s = sum_of_given(
            None if t_dots is None else alpha * t_dots * values,
            None if t_values is None else alpha * dots * t_values,
        )
    p = edge_weights(of_rows, edge, s)
    t_p = None if t_s is None else _edge_derivative(of_rows, edge, p, t_s)
    return sum_of_given(
        None if t_p is None else spmm(*pattern, t_p, D, "auto"),
        None if t_D is None else spmm(*pattern, p, t_D, "auto"),
    )


spmm: Operator = define(
    "spmm(Tensor indptr, Tensor indices, Tensor values, Tensor B, str kernel) -> Tensor",
    kernel=_spmm_kernel,
    fake=_spmm_fake,
    backward=_spmm_backward,
    jvp=lambda *given: _bilinear_jvp(spmm, *given),
)

spmm_transposed: Operator = define(
    "spmm_transposed(Tensor indptr, Tensor indices, Tensor values, Tensor B, SymInt columns, "
    "str kernel) -> Tensor",
    kernel=_transposed_kernel,
    fake=_transposed_fake,
    backward=_transposed_backward,
    jvp=lambda *given: _bilinear_jvp(spmm_transposed, *given),
)

sddmm: Operator = define(
    "sddmm(Tensor indptr, Tensor indices, Tensor C, Tensor B, str kernel) -> Tensor",
    kernel=_sddmm_kernel,
    fake=_sddmm_fake,
    backward=_sddmm_backward,
    jvp=lambda *given: _bilinear_jvp(sddmm, *given),
)


def _with_edge(of_arguments: Any) -> tuple[Any, ...]:
    """Convert the arguments of ``fusedmm_softmax`` to arguments of ``fusedmm``."""
    *tensors, alpha, kernel = of_arguments
    return (*tensors, None, alpha, kernel)


def _softmax_inputs(inputs: Inputs) -> tuple[Any, ...]:
    *tensors, _, alpha, kernel = _with_edge(inputs)
    return (*tensors, "softmax", alpha, kernel)


def _softmax_backward(
    inputs: Inputs, needs_grad: Sequence[bool], outputs: tuple[Tensor, Tensor], gradient: Tensor
) -> Gradients:
    *made, _, _, _ = fusedmm_backward_of(
        _softmax_inputs(inputs), _with_edge(needs_grad), outputs[0], gradient, outputs[1]
    )
    return (*made, None, None)


def _softmax_jvp(
    inputs: Inputs, tangents: Tangents, outputs: tuple[Tensor, Tensor]
) -> Tensor | None:
    return fusedmm_jvp_of(_softmax_inputs(inputs), _with_edge(tangents), outputs[0])


fusedmm_softmax: OpOverload = define(
    "fusedmm_softmax(Tensor indptr, Tensor indices, Tensor? values, Tensor C, Tensor B, Tensor D, "
    "float alpha, str kernel) -> (Tensor, Tensor)",
    kernel=_softmax_kernel,
    fake=lambda _, indices, values, C, B, D, *others: attended_by_softmax(C, D),
    backward=_softmax_backward,
    jvp=_softmax_jvp,
)


def _recorded(keyset: DispatchKeySet, *inputs: OperatorArgument) -> Tensor | None:
    *tensors, edge, alpha, kernel = inputs
    if edge != "softmax" or not saves_log_totals(operations.csr_fusedmm_softmax, tensors[3]):
        return None
    out: Tensor = fusedmm_softmax.redispatch(keyset, *tensors, alpha, kernel)[0]
    return out


fusedmm = define(
    "fusedmm(Tensor indptr, Tensor indices, Tensor? values, Tensor C, Tensor B, Tensor D, "
    "str edge, float alpha, str kernel) -> Tensor",
    kernel=_fusedmm_kernel,
    fake=lambda _, indices, values, C, B, D, *others: attended(C, D),
    backward=fusedmm_backward_of,
    jvp=fusedmm_jvp_of,
    recorded=_recorded,
)


# ---- into a given tensor's memory: not differentiable


def _spmm_into(
    indptr: Tensor,
    indices: Tensor,
    values: Tensor,
    B: Tensor,
    out: Tensor,
    alpha: float,
    beta: float,
    kernel: str,
) -> None:
    A = matrix_of(indptr, indices, B.shape[-2])
    shared = out.untyped_storage()._cdata in {t.untyped_storage()._cdata for t in (values, B)}
    written = out.clone() if shared else for_kernels(out, 2)
    run(operations.csr_spmm, A, [(values, 1), (B, 2), (written, 2)], alpha, beta, kernel)
    if written is not out:
        out.copy_(written)


LIBRARY.define(
    "spmm_into(Tensor indptr, Tensor indices, Tensor values, Tensor B, Tensor(a!) out, "
    "float alpha, float beta, str kernel) -> ()",
    tags=(torch.Tag.pt2_compliant_tag,),
)
for _device in DEVICES:
    LIBRARY.impl("spmm_into", _spmm_into, _device)
torch.library.register_fake("wollemi::spmm_into", lambda *_: None, lib=LIBRARY)
spmm_into = torch.ops.wollemi.spmm_into.default
