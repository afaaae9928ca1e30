"""Attention with interval masks as a PyTorch operator: two tensors with one number per row.

Second derivatives and forward-mode derivatives use operators that work on entries: they list the
entries of the mask, which takes memory that no other operation needs.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.multiprocessing.reductions import StorageWeakRef

from ...core.errors import ExecutorMismatch, InvalidMatrix
from ...core.formats.mask import Mask
from ...core.operations import masks as operations
from . import operators
from .blocks import run
from .captured import refuse_always, refuse_first
from .constants import constant
from .gradients import found_or_none, saves_log_totals
from .identities import Seen, identity
from .memory import borrowed, executor_of, numpy_of, tensor_of
from .patterns import faked, outside_of_transforms, with_id
from .register import define, define_without_derivatives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch._C import DispatchKeySet
    from torch._ops import OpOverload

    from .types import Gradients, Inputs, OperatorArgument, Tangents

# ---- masks, found by the memory of their tensors


class _Known:
    """A mask that uses the memory of tensors, and whether the memory still belongs to them."""

    def __init__(self, mask: Mask, *tensors: Tensor) -> None:
        self.mask = mask
        self.storages = [StorageWeakRef(t.untyped_storage()) for t in tensors]

    @property
    def lost(self) -> bool:
        return any(storage.expired() for storage in self.storages)


_known: dict[tuple[Any, ...], _Known] = {}
#: Cache of masks, like the cache of patterns.
_seen = Seen[Mask]()
_tensors: weakref.WeakKeyDictionary[Mask, tuple[Tensor, Tensor]] = weakref.WeakKeyDictionary()


def mask_of(first: Tensor, last: Tensor, columns: int) -> Mask:
    """Return the mask of two tensors; it must not outlive them."""
    result = _seen.get(first, last, columns)
    if result is not None:
        return result
    key = (*identity(first), *identity(last), columns)
    known = _known.get(key)
    if known is None or known.lost:
        for end in (first, last):
            if end.dim() != 1 or end.is_floating_point() or not end.is_contiguous():
                raise InvalidMatrix(
                    f"first and last: expected contiguous tensors of integers, got {end.dtype} of "
                    f"shape {tuple(end.shape)}"
                )
        refuse_first(first, "a product with a mask", "its ends on the host")
        where = executor_of(first.device)
        # check on the host, where the mask's ends are computed
        begin, end = numpy_of(first.cpu()), numpy_of(last.cpu())
        known = _remember(key, Mask(begin, end, columns, executor=where), first, last)
    _seen.add(first, last, columns, known.mask)
    return known.mask


def _remember(key: tuple[Any, ...], mask: Mask, first: Tensor, last: Tensor) -> _Known:
    known = _Known(mask, first, last)
    for lost in [key for key, other in list(_known.items()) if other.lost]:
        _known.pop(lost, None)
    _known[key] = known
    return known


def _tensors_of(mask: Mask) -> tuple[Tensor, Tensor]:
    result = _tensors.get(mask)
    if result is None:
        with outside_of_transforms():
            result = (tensor_of(mask.first), tensor_of(mask.last))
            key = (*identity(result[0]), *identity(result[1]), mask.shape[1])
            _remember(key, _twin(mask, *result), *result)
        _tensors[mask] = result
    return result


def _twin(mask: Mask, first: Tensor, last: Tensor) -> Mask:
    """Return a mask on the memory of tensors that keeps neither them nor ``mask`` alive."""
    twin = Mask.__new__(Mask)
    twin.__dict__.update(mask.__dict__)
    ends = (borrowed(mask.executor, end) for end in (first, last))
    twin.__dict__.update(zip(("first", "last"), ends, strict=True))
    return twin


@constant
def _first_of(number: int) -> Tensor:
    return _tensors_of(cast(Mask, with_id(number)))[0]


@constant
def _last_of(number: int) -> Tensor:
    return _tensors_of(cast(Mask, with_id(number)))[1]


def mask_tensors(mask: Mask, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the bounds of a mask's intervals as tensors that share its memory.

    Raises
    ------
    ExecutorMismatch
        If the mask is on another device.
    """
    if torch.compiler.is_compiling():
        first, last = _first_of(id(mask)), _last_of(id(mask))
    else:
        first, last = _tensors_of(mask)
        if torch._C._len_torch_dispatch_stack():
            first, last = faked(first), faked(last)
    if first.device.type != device.type:
        raise ExecutorMismatch(
            f"the mask lives on {mask.executor.name} and a tensor on {device}; move one of them"
        )
    return first, last


# ---- the operator


def _kernel(
    first: Tensor,
    last: Tensor,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    edge: str,
    alpha: float,
    kernel: str,
) -> Tensor:
    A = mask_of(first, last, B.shape[-2])
    out = operators.attended(C, D)
    run(operations.fusedmm, A, [(x, 2) for x in (C, B, D, out)], alpha, edge, kernel)
    return out


def _softmax_kernel(
    first: Tensor, last: Tensor, C: Tensor, B: Tensor, D: Tensor, alpha: float, kernel: str
) -> tuple[Tensor, Tensor]:
    A = mask_of(first, last, B.shape[-2])
    out, log_totals = operators.attended_by_softmax(C, D)
    operands = [*((x, 2) for x in (C, B, D, out)), (log_totals, 1)]
    run(operations.fusedmm_softmax, A, operands, alpha, kernel)
    return out, log_totals


def entries_of(first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Return the entries of a mask in CSR form."""
    refuse_always(
        first,
        "a derivative of a product with a mask",
        "its entries are listed, which the host waits for",
        "Use the pattern with entries: mask.tocsr()",
    )
    lengths = last.long() - first
    indptr = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    shifts = (first - indptr[:-1]).repeat_interleave(lengths)
    return indptr, torch.arange(shifts.shape[0], device=first.device) + shifts


def _by_entries(inputs: Inputs) -> tuple[Any, ...]:
    first, last, *operands, edge, alpha, _ = inputs
    return (*entries_of(first, last), None, *operands, edge, alpha, "auto")


def _backward(
    inputs: Inputs,
    needs_grad: Sequence[bool],
    out: Tensor,
    gradient: Tensor,
    log_totals: Tensor | None = None,
) -> Gradients:
    *operands, edge, alpha, kernel = inputs
    wanted = list(needs_grad[2:5])
    alone = not (torch.is_grad_enabled() or forward_ad._current_level >= 0)
    if not (alone and executor_of(gradient.device).supports(operations.fusedmm_backward)):
        needed = (False, False, False, *wanted, False, False, False)
        listed = operators.fusedmm_backward_of(_by_entries(inputs), needed, out, gradient)
        found = listed[3:6]
    elif log_totals is None:
        found = _gradients(*operands, gradient, edge, alpha, kernel, wanted)
    else:
        found = _softmax_gradients(*operands, gradient, out, log_totals, alpha, kernel, wanted)
    return None, None, *found_or_none(found, wanted), None, None, None


def _jvp(inputs: Inputs, tangents: Tangents, out: Tensor) -> Tensor | None:
    listed = (None, None, None, *tangents[2:5], None, None, None)
    return operators.fusedmm_jvp_of(_by_entries(inputs), listed, out)


def _softmax_inputs(inputs: Inputs) -> tuple[Any, ...]:
    *operands, alpha, kernel = inputs
    return (*operands, "softmax", alpha, kernel)


def _softmax_backward(
    inputs: Inputs, needs_grad: Sequence[bool], outputs: tuple[Tensor, Tensor], gradient: Tensor
) -> Gradients:
    out, log_totals = outputs
    return _backward(_softmax_inputs(inputs), needs_grad, out, gradient, log_totals)[:-1]


def _softmax_jvp(
    inputs: Inputs, tangents: Tangents, outputs: tuple[Tensor, Tensor]
) -> Tensor | None:
    return _jvp(_softmax_inputs(inputs), tangents, outputs[0])


fusedmm_softmax: OpOverload = define(
    "mask_fusedmm_softmax(Tensor first, Tensor last, Tensor C, Tensor B, Tensor D, float alpha, "
    "str kernel) -> (Tensor, Tensor)",
    kernel=_softmax_kernel,
    fake=lambda _, last, C, B, D, *others: operators.attended_by_softmax(C, D),
    backward=_softmax_backward,
    jvp=_softmax_jvp,
)


def _recorded(keyset: DispatchKeySet, *inputs: OperatorArgument) -> Tensor | None:
    *operands, edge, alpha, kernel = inputs
    if edge != "softmax" or not saves_log_totals(operations.fusedmm_softmax, operands[2]):
        return None
    out: Tensor = fusedmm_softmax.redispatch(keyset, *operands, alpha, kernel)[0]
    return out


fusedmm = define(
    "mask_fusedmm(Tensor first, Tensor last, Tensor C, Tensor B, Tensor D, str edge, float alpha, "
    "str kernel) -> Tensor",
    kernel=_kernel,
    fake=lambda _, last, C, B, D, *others: operators.attended(C, D),
    backward=_backward,
    jvp=_jvp,
    recorded=_recorded,
)


def _gradient_kernel(
    first: Tensor,
    last: Tensor,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    gradient: Tensor,
    edge: str,
    alpha: float,
    kernel: str,
    needs_grad: list[bool],
) -> tuple[Tensor, ...]:
    A = mask_of(first, last, B.shape[-2])
    result = _empty_gradients((C, B, D), needs_grad)
    operands = [(x, 2) for x in (C, B, D, gradient, *found_or_none(result, needs_grad))]
    run(operations.fusedmm_backward, A, operands, alpha, edge, kernel)
    return result


def _softmax_gradient_kernel(
    first: Tensor,
    last: Tensor,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    gradient: Tensor,
    out: Tensor,
    log_totals: Tensor,
    alpha: float,
    kernel: str,
    needs_grad: list[bool],
) -> tuple[Tensor, ...]:
    A = mask_of(first, last, B.shape[-2])
    result = _empty_gradients((C, B, D), needs_grad)
    operands = [*((x, 2) for x in (C, B, D, gradient, out)), (log_totals, 1)]
    made = [(x, 2) for x in found_or_none(result, needs_grad)]
    run(operations.fusedmm_softmax_backward, A, [*operands, *made], alpha, kernel)
    return result


def _empty_gradients(operands: tuple[Tensor, ...], needs_grad: list[bool]) -> tuple[Tensor, ...]:
    # an operator cannot return None
    return tuple(
        x.new_empty(x.shape if want else (0,)) for x, want in zip(operands, needs_grad, strict=True)
    )


_gradients = define_without_derivatives(
    "mask_fusedmm_backward(Tensor first, Tensor last, Tensor C, Tensor B, Tensor D, "
    "Tensor gradient, str edge, float alpha, str kernel, bool[] needs_grad) "
    "-> (Tensor, Tensor, Tensor)",
    kernel=_gradient_kernel,
    fake=lambda _, last, C, B, D, *others: _empty_gradients((C, B, D), others[-1]),
    optional=True,
)
_softmax_gradients = define_without_derivatives(
    "mask_fusedmm_softmax_backward(Tensor first, Tensor last, Tensor C, Tensor B, Tensor D, "
    "Tensor gradient, Tensor out, Tensor log_totals, float alpha, str kernel, bool[] needs_grad) "
    "-> (Tensor, Tensor, Tensor)",
    kernel=_softmax_gradient_kernel,
    fake=lambda _, last, C, B, D, *others: _empty_gradients((C, B, D), others[-1]),
    optional=True,
)
