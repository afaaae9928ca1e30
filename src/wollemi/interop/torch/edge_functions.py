"""Traced edge functions in PyTorch: attention with a user-defined function in one kernel.

The forward product runs the function inside of its kernel. Gradients consist of differentiable
operators, which evaluate the outputs of the program and of its derivatives on arrays of scores.
Therefore, gradients of every order exist.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ...core.edge_functions.program import derivatives_of, program_of
from ...core.edge_functions.symbols import CALLS, EdgeSymbol, Untraceable
from ...core.edge_functions.trace import EdgeTracing, TracedEntries, trace
from ...core.errors import UnsupportedOperation
from ...core.operations import masks as mask_operations
from ...core.operations import products as operations
from . import masks, operators
from .blocks import run
from .gradients import log_totals_like
from .patterns import Pattern, matrix_of
from .register import define
from .segments import (
    segment_max,
    segment_softmax,
    segment_spread,
    segment_sum,
    softmax_derivative,
)

if TYPE_CHECKING:
    from torch._ops import OpOverload

    from .messages import EdgeFunction
    from .types import Gradients, Inputs, Tangents

_LOG = logging.getLogger("wollemi")
_TOLD: set[str] = set()


class Inlined(NamedTuple):
    """An edge function that becomes part of the kernel.

    Attributes
    ----------
    text : str
        The text of its program.
    softmax : bool
        Whether the program ends with a softmax.
    of_rows, of_columns, of_entries : list of Tensor
        Its inputs by rows, by columns and by entries.
    """

    text: str
    softmax: bool
    of_rows: list[Tensor]
    of_columns: list[Tensor]
    of_entries: list[Tensor]


def _traced(
    edge: EdgeFunction,
    shape: tuple[int, int],
    of_scores: tuple[int, ...],
    lists_entries: bool,
    before: Callable[[EdgeTracing, EdgeSymbol], EdgeSymbol] | None,
) -> Inlined:
    program, *inputs = trace(edge, shape, of_scores, lists_entries=lists_entries, before=before)
    return Inlined(program.text, program.final == "softmax", *inputs)


def inlined_by_name(edge: str, softcap: float | None, bias: Tensor | None) -> Inlined:
    """Return the program of a named edge function, preceded by a cap and a bias."""
    text = text_of_named(edge, softcap, bias is not None)
    return Inlined(text, edge == "softmax", [], [], [] if bias is None else [bias])


def traced_or_none(
    edge: EdgeFunction | str,
    shape: tuple[int, int],
    of_scores: tuple[int, ...],
    *,
    bias: Tensor | None = None,
    softcap: float | None = None,
) -> Inlined | None:
    """Return the program of an edge function after bias and cap; on failure log why, return None.

    Parameters
    ----------
    edge : callable or str
        A function, or the name of a function.
    shape : tuple of int
        Shape of the pattern.
    of_scores : tuple of int
        The shape of the scores.
    bias : Tensor, optional
        Added to the scores.
    softcap : float, optional
        Bound of the scores, applied before the bias.
    """
    if not callable(edge):
        return inlined_by_name(edge, softcap, bias)
    before = None if bias is None and softcap is None else _before(bias, softcap)
    try:
        return _traced(edge, shape, of_scores, True, before)
    except Untraceable as reason:
        told = f"an edge function runs between two kernels: {reason}"
        if told not in _TOLD:
            _TOLD.add(told)
            _LOG.info(told)
        return None


def traced_of_mask(
    edge: EdgeFunction | str,
    shape: tuple[int, int],
    of_scores: tuple[int, ...],
    softcap: float | None,
) -> Inlined:
    """Return the program of a mask's edge function.

    Raises
    ------
    UnsupportedOperation
        If it cannot be traced: with a mask, there is no array of scores to call it on.
    """
    if not callable(edge):
        return inlined_by_name(edge, softcap, None)
    before = None if softcap is None else _before(None, softcap)
    try:
        return _traced(edge, shape, of_scores, False, before)
    except Untraceable as reason:
        raise UnsupportedOperation(
            f"edge: a mask takes functions that become a part of the kernel, and this one cannot: "
            f"{reason}. Use arithmetic, comparisons and where, or the pattern with entries: "
            "mask.tocsr()"
        ) from None


@torch.compiler.assume_constant_result
def text_of_named(edge: str, softcap: float | None, with_bias: bool) -> str:
    """Return the program of a named edge function, preceded by a cap and a bias.

    PyTorch's compiler treats the text as a constant. The program's only input is the bias, if there
    is one.
    """
    bias = torch.zeros(1) if with_bias else None
    before = None if bias is None and softcap is None else _before(bias, softcap)
    return trace(_NAMED[edge], (1, 1), (1,), before=before).program.text


def _before(
    bias: Tensor | None, softcap: float | None
) -> Callable[[EdgeTracing, EdgeSymbol], EdgeSymbol]:
    def function(tracing: EdgeTracing, score: EdgeSymbol) -> EdgeSymbol:
        if softcap is not None:
            score = CALLS["tanh"](tracing, score / softcap) * softcap
        return score if bias is None else score + bias

    return function


def _softmax(s: Tensor, entries: TracedEntries) -> Tensor:
    return entries.softmax(s)


_NAMED: dict[str, Any] = {
    "identity": lambda s, entries: s,
    "sigmoid": lambda s, entries: torch.sigmoid(s),
    "softmax": _softmax,
}


def lowered(*tensors: Tensor | None) -> tuple[Any, ...]:
    """Return operands in autocast's dtype if autocast is enabled; float64 operands are kept."""
    device = next(x for x in tensors if x is not None).device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(x if x is None or x.dtype is torch.float64 else x.to(dtype) for x in tensors)


def stacked(arrays: Sequence[Tensor], batch: tuple[int, ...], length: int, like: Tensor) -> Tensor:
    """Return inputs of one kind as one array, shape (..., count, length)."""
    dtype = torch.float32 if like.dtype.itemsize < 4 else like.dtype
    if not arrays:
        return like.new_empty((*batch, 0, length), dtype=dtype)
    whole = [x.to(dtype).expand(*batch, length)[..., None, :] for x in arrays]
    return whole[0] if len(whole) == 1 else torch.cat(whole, -2)


def _given(inputs: Inputs) -> list[tuple[Tensor | None, int]]:
    return [(x if x.shape[-2] else None, 2) for x in inputs]


# ---- the function on stored scores


def _function_kernel(
    indptr: Tensor,
    indices: Tensor,
    s: Tensor,
    of_rows: Tensor,
    of_columns: Tensor,
    of_entries: Tensor,
    function: str,
) -> Tensor:
    A = matrix_of(indptr, indices, of_columns.shape[-1])
    out = _function_fake(indptr, indices, s, of_rows, of_columns, of_entries, function)
    operands = _given((of_rows, of_columns, of_entries))
    run(operations.csr_edge_function, A, [(s, 1), *operands, (out, 2)], function)
    return out


def _function_fake(
    indptr: Tensor,
    indices: Tensor,
    s: Tensor,
    of_rows: Tensor,
    of_columns: Tensor,
    of_entries: Tensor,
    function: str,
) -> Tensor:
    outputs = len(program_of(function).outputs)
    return s.new_empty((*s.shape[:-1], outputs, s.shape[-1]))


def _function_backward(
    inputs: Inputs, needs_grad: Sequence[bool], out: Tensor, gradient: Tensor
) -> Gradients:
    indptr, indices, s, of_rows, of_columns, of_entries, function = inputs
    counts = program_of(function).counts
    more = torch.cat([of_entries, gradient.to(of_entries.dtype)], -2)
    made = edge_function(
        indptr, indices, s, of_rows, of_columns, more, derivatives_of(function).backward.text
    )
    d_s, d_rows, d_columns, d_entries = made.split([1, *counts], -2)
    n = of_columns.shape[-1]
    if needs_grad[3]:
        d_rows = _summed(indptr, indices, d_rows, n)
    if needs_grad[4]:
        d_columns = _summed_by_columns(indptr, indices, d_columns, n)
    found = (d_s[..., 0, :], d_rows, d_columns, d_entries)
    given = (s, of_rows, of_columns, of_entries)
    return (
        None,
        None,
        *(
            x.to(like.dtype) if needed else None
            for x, like, needed in zip(found, given, needs_grad[2:6], strict=True)
        ),
        None,
    )


def _summed(indptr: Tensor, indices: Tensor, x: Tensor, columns: int) -> Tensor:
    """Return the sums over the entries of each row of arrays (..., count, nnz)."""
    if not x.shape[-2]:
        return x.new_empty((*x.shape[:-1], indptr.shape[0] - 1))
    return segment_sum(indptr, indices, x, columns)


def _summed_by_columns(indptr: Tensor, indices: Tensor, x: Tensor, columns: int) -> Tensor:
    """Return the sums over the entries of each column of arrays (..., count, nnz)."""
    if not x.shape[-2]:
        return x.new_empty((*x.shape[:-1], columns))
    ones = x.new_ones((*x.shape[:-1], indptr.shape[0] - 1, 1))
    return operators.spmm_transposed(indptr, indices, x, ones, columns, "auto")[..., 0]


def _function_jvp(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor:
    indptr, indices, s, *operands, function = inputs
    _, _, t_s, *t_given, _ = tangents
    moved = [
        torch.zeros_like(x) if t is None else t for x, t in zip(operands, t_given, strict=True)
    ]
    t_s = torch.zeros_like(s) if t_s is None else t_s
    rows, columns, entries = (torch.cat([x, t], -2) for x, t in zip(operands, moved, strict=True))
    entries = torch.cat([entries, t_s[..., None, :].to(entries.dtype)], -2)
    text = derivatives_of(function).forward.text
    return edge_function(indptr, indices, s, rows, columns, entries, text)


edge_function: OpOverload = define(
    "edge_function(Tensor indptr, Tensor indices, Tensor s, Tensor of_rows, Tensor of_columns, "
    "Tensor of_entries, str function) -> Tensor",
    kernel=_function_kernel,
    fake=_function_fake,
    backward=_function_backward,
    jvp=_function_jvp,
    autocast=False,
)


# ---- the product


def _traced_kernel(
    indptr: Tensor,
    indices: Tensor,
    values: Tensor | None,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    of_rows: Tensor,
    of_columns: Tensor,
    of_entries: Tensor,
    alpha: float,
    function: str,
    kernel: str,
) -> tuple[Tensor, Tensor]:
    A = matrix_of(indptr, indices, B.shape[-2])
    out, log_totals = _empty_results(C, D, function)
    given = _given((of_rows, of_columns, of_entries))
    logs = log_totals if program_of(function).final == "softmax" else None
    operands = [(values, 1), (C, 2), (B, 2), (D, 2), *given, (out, 2), (logs, 1)]
    run(operations.csr_fusedmm_traced, A, operands, alpha, function, kernel)
    return out, log_totals


def _empty_results(C: Tensor, D: Tensor, function: str) -> tuple[Tensor, Tensor]:
    is_softmax = program_of(function).final == "softmax"
    return operators.attended(C, D), log_totals_like(C if is_softmax else C[..., :0, :])


def _weights(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor, bool]:
    """Return the products, scores and weights of the entries, computed by operators."""
    indptr, indices, values, C, B, _, of_rows, of_columns, of_entries, alpha, function, _ = inputs
    dots = alpha * operators.sddmm(indptr, indices, C, B, "auto")
    s = dots if values is None else dots * values
    t = edge_function(indptr, indices, s, of_rows, of_columns, of_entries, function)[..., 0, :]
    is_softmax = program_of(function).final == "softmax"
    p = segment_softmax(indptr, indices, t, B.shape[-2]) if is_softmax else t
    return dots, s, p, is_softmax


def _traced_backward(
    inputs: Inputs, needs_grad: Sequence[bool], outputs: tuple[Tensor, Tensor], gradient: Tensor
) -> Gradients:
    narrow = inputs[3].dtype
    if narrow.itemsize < 4 and gradient.is_cpu:  # as for the gradients of named functions
        wide = [x.float() if isinstance(x, Tensor) and x.dtype is narrow else x for x in inputs]
        made = _traced_backward(wide, needs_grad, outputs, gradient.float())
        return (*(x if x is None else x.to(narrow) for x in made[:6]), *made[6:])
    indptr, indices, values, C, B, D, of_rows, of_columns, of_entries, alpha, function, _ = inputs
    pattern, n = (indptr, indices), B.shape[-2]
    dots, s, p, is_softmax = _weights(inputs)
    d_D = operators.spmm_transposed(*pattern, p, gradient, n, "auto") if needs_grad[5] else None
    if not any(needs_grad[2:5]) and not any(needs_grad[6:9]):
        return (None,) * 5 + (d_D,) + (None,) * 6
    d_t = operators.sddmm(*pattern, gradient, D, "auto")
    if is_softmax:
        d_t = softmax_derivative(*pattern, p, d_t, n)
    asked = (False, False, any(needs_grad[2:5]), *needs_grad[6:9], False)
    given = (*pattern, s, of_rows, of_columns, of_entries, function)
    made = _function_backward(given, asked, s, d_t[..., None, :])
    _, _, d_s, d_rows, d_columns, d_entries, _ = made
    d_values = d_s * dots if needs_grad[2] else None
    d_dots = d_s
    if d_s is not None:
        d_dots = alpha * (d_s if values is None else d_s * values)
    d_C = operators.spmm(*pattern, d_dots, B, "auto") if needs_grad[3] else None
    d_B = operators.spmm_transposed(*pattern, d_dots, C, n, "auto") if needs_grad[4] else None
    return None, None, d_values, d_C, d_B, d_D, d_rows, d_columns, d_entries, None, None, None


def _traced_jvp(
    inputs: Inputs, tangents: Tangents, outputs: tuple[Tensor, Tensor]
) -> Tensor | None:
    indptr, indices, values, C, B, D, of_rows, of_columns, of_entries, alpha, function, _ = inputs
    _, _, t_values, t_C, t_B, t_D, *t_given, _, _, _ = tangents
    pattern, n = (indptr, indices), B.shape[-2]
    dots, s, p, is_softmax = _weights(inputs)
    t_dots = operators.sum_of_given(
        None if t_C is None else alpha * operators.sddmm(*pattern, t_C, B, "auto"),
        None if t_B is None else alpha * operators.sddmm(*pattern, C, t_B, "auto"),
    )
    t_s = operators.sum_of_given(
        None if t_dots is None else t_dots if values is None else t_dots * values,
        None if t_values is None else dots * t_values,
    )
    t_p = None
    if t_s is not None or any(t is not None for t in t_given):
        given = (*pattern, s, of_rows, of_columns, of_entries, function)
        t_p = _function_jvp(given, (None, None, t_s, *t_given, None), s)[..., 0, :]
        t_p = softmax_derivative(*pattern, p, t_p, n) if is_softmax else t_p
    return operators.sum_of_given(
        None if t_p is None else operators.spmm(*pattern, t_p, D, "auto"),
        None if t_D is None else operators.spmm(*pattern, p, t_D, "auto"),
    )


_fusedmm_traced: OpOverload = define(
    "fusedmm_traced(Tensor indptr, Tensor indices, Tensor? values, Tensor C, Tensor B, Tensor D, "
    "Tensor of_rows, Tensor of_columns, Tensor of_entries, float alpha, str function, str kernel) "
    "-> (Tensor, Tensor)",
    kernel=_traced_kernel,
    fake=lambda _, indices, values, C, B, D, *others: _empty_results(C, D, others[-2]),
    backward=_traced_backward,
    jvp=_traced_jvp,
    autocast=False,
)


def _differentiable(*tensors: Tensor | None) -> bool:
    """Return whether a caller may request derivatives of a result."""
    if torch.compiler.is_compiling():
        return torch.is_grad_enabled()
    if forward_ad._current_level >= 0 or torch._C._functorch.peek_interpreter_stack() is not None:
        return True  # a transform may hold the tensor that requires the gradient
    given = [x for x in tensors if x is not None]
    return torch.is_grad_enabled() and any(x.requires_grad for x in given)


def _log_totals(inputs: Inputs) -> Tensor:
    """Return the log-totals of a softmax, computed by differentiable operators."""
    indptr, indices, values, C, B, _, of_rows, of_columns, of_entries, alpha, function, _ = inputs
    pattern, n = (indptr, indices), B.shape[-2]
    s = alpha * operators.sddmm(*pattern, C, B, "auto")
    s = s if values is None else s * values
    t = edge_function(*pattern, s, of_rows, of_columns, of_entries, function)[..., 0, :]
    largest = segment_max(*pattern, t.detach(), n)
    largest = largest.masked_fill(largest == -torch.inf, 0)
    totals = segment_sum(*pattern, torch.exp(t - segment_spread(*pattern, largest, n)), n)
    there = totals > 0
    logs = torch.log(torch.where(there, totals, 1)) + largest
    return torch.where(there, logs, torch.inf).to(of_rows.dtype)


# ---- the product with a mask


def _mask_kernel(
    first: Tensor,
    last: Tensor,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    of_rows: Tensor,
    of_columns: Tensor,
    alpha: float,
    function: str,
    kernel: str,
) -> tuple[Tensor, Tensor]:
    A = masks.mask_of(first, last, B.shape[-2])
    out, log_totals = _empty_results(C, D, function)
    rows, columns, _ = _given((of_rows, of_columns, of_columns))
    logs = log_totals if program_of(function).final == "softmax" else None
    operands = [(C, 2), (B, 2), (D, 2), rows, columns, (out, 2), (logs, 1)]
    run(mask_operations.fusedmm_traced, A, operands, alpha, function, kernel)
    return out, log_totals


def _listed(inputs: Inputs) -> tuple[Any, ...]:
    """Return the arguments of the product with a pattern that lists the mask's entries."""
    first, last, C, B, D, of_rows, of_columns, alpha, function, _ = inputs
    indptr, indices = masks.entries_of(first, last)
    none = of_rows.new_empty((*C.shape[:-2], 0, indices.shape[0]))
    return (indptr, indices, None, C, B, D, of_rows, of_columns, none, alpha, function, "auto")


def _mask_backward(
    inputs: Inputs, needs_grad: Sequence[bool], outputs: tuple[Tensor, Tensor], gradient: Tensor
) -> Gradients:
    asked = (False, False, False, *needs_grad[2:7], False, False, False, False)
    made = _traced_backward(_listed(inputs), asked, outputs, gradient)
    return (None, None, *made[3:8], None, None, None)


def _mask_jvp(inputs: Inputs, tangents: Tangents, outputs: tuple[Tensor, Tensor]) -> Tensor | None:
    listed = (None, None, None, *tangents[2:7], None, None, None, None)
    return _traced_jvp(_listed(inputs), listed, outputs)


_mask_fusedmm_traced: OpOverload = define(
    "mask_fusedmm_traced(Tensor first, Tensor last, Tensor C, Tensor B, Tensor D, "
    "Tensor of_rows, Tensor of_columns, float alpha, str function, str kernel) "
    "-> (Tensor, Tensor)",
    kernel=_mask_kernel,
    fake=lambda _, last, C, B, D, *others: _empty_results(C, D, others[-2]),
    backward=_mask_backward,
    jvp=_mask_jvp,
    autocast=False,
)


def mask_fusedmm_traced(
    ends: tuple[Tensor, Tensor],
    operands: tuple[Tensor, Tensor, Tensor],
    program: Inlined,
    alpha: float,
    kernel: str,
    *,
    return_lse: bool,
) -> tuple[Tensor, Tensor]:
    """Return a mask's product with a traced function, and the log-totals of its softmax."""
    C, B, D = lowered(*operands)
    operands, batch = (C, B, D), tuple(C.shape[:-2])
    inputs = (
        stacked(program.of_rows, batch, C.shape[-2], C),
        stacked(program.of_columns, batch, B.shape[-2], C),
    )
    given = (*ends, *operands, *inputs, alpha, program.text, kernel)
    out, log_totals = _mask_fusedmm_traced(*given)
    if return_lse and _differentiable(C, B, *inputs):
        log_totals = _log_totals(_listed(given))
    return out, log_totals


def fusedmm_traced(
    pattern: Pattern,
    values: Tensor | None,
    operands: tuple[Tensor, Tensor, Tensor],
    program: Inlined,
    alpha: float,
    kernel: str,
    *,
    return_lse: bool,
) -> tuple[Tensor, Tensor]:
    """Return the product with a traced function, and the log-totals of its softmax.

    The log-totals are differentiable only with ``return_lse``, which may have to list the entries.
    """
    C, B, D, values = lowered(*operands, values)
    operands, batch, (m, n) = (C, B, D), tuple(C.shape[:-2]), pattern.shape
    inputs = (
        stacked(program.of_rows, batch, m, C),
        stacked(program.of_columns, batch, n, C),
        stacked(program.of_entries, batch, pattern.indices.shape[0], C),
    )
    text = program.text
    given = (pattern.indptr, pattern.indices, values, *operands, *inputs, alpha, text, kernel)
    out, log_totals = _fusedmm_traced(*given)
    if return_lse and _differentiable(values, C, B, *inputs):
        log_totals = _log_totals(given)
    return out, log_totals
