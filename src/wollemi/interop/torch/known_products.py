"""Repeat products with tensors of a known layout, without checks and without the dispatcher.

A product's checks and the decisions of PyTorch's dispatcher depend only on the dense tensor's dtype
and layout and on the modes of the thread. If these equal an earlier product's, and that product
consists only of launches (:mod:`.blocks`), the launches are repeated at once. On an H100, PyTorch's
dispatch took 20 of the 41 microseconds of a small product, and the preceding checks 15.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import _C, Tensor
from torch.autograd import forward_ad

from ...core.formats import Csr
from ...core.operations import products as operations
from ...core.program import recording
from . import operators
from .blocks import MOST_LAYOUTS, layout_of
from .memory import on_its_stream
from .patterns import data_of, indices_of, indptr_of, known_tensors

_Key = _C.DispatchKey

#: Possible first dispatch keys of a plain tensor: autograd, which does nothing without requested
#: gradients, or a key that wollemi's operators ignore.
_FIRST = (
    _Key.AutogradCUDA, _Key.AutogradCPU, _Key.ADInplaceOrView, _Key.BackendSelect, _Key.CUDA,
    _Key.CPU,
)  # fmt: skip
_PASSED_BY = _C.DispatchKeySet(_Key.ADInplaceOrView) | _C.DispatchKeySet(_Key.BackendSelect)
_KERNELS = {_C.DispatchKeySet(key).raw_repr() for key in (_Key.CUDA, _Key.CPU)}


class Known(NamedTuple):
    """An earlier product.

    Attributes
    ----------
    repeat : callable
        Launches the product for arrays at other addresses: values, ``B``, result.
    values : Tensor
        The values of the matrix.
    address : int
        The address of the values.
    remainders : tuple of int
        Addresses of ``B`` and of the result, modulo the executor's alignment.
    shape : tuple of int
        The shape of the result.
    """

    repeat: Callable[[Sequence[int]], None]
    values: Tensor
    address: int
    remainders: tuple[int, int]
    shape: tuple[int, int]


def spmm_again(A: Any, B: Tensor, alpha: object, beta: object) -> Tensor | None:
    """Return ``A @ B`` if an equal product was computed before, else None.

    Parameters
    ----------
    A, B : object
        The matrix argument and the dense operand.
    alpha, beta : object
        The scalar factors: only 1 and 0 are supported.
    """
    tensors = known_tensors.get(id(A))
    if tensors is None or not tensors.products or type(B) is not Tensor or _is_watched(B):
        return None
    known: Known | None = tensors.products.get(_state(B))
    if known is None or not tensors.are_of(A) or known.values is not tensors.values():
        return None
    on = A.executor
    if on.observed or recording() is not None or not _are_plain(alpha, beta):
        return None
    result = B.new_empty(known.shape)
    addresses = known.address, B.data_ptr(), result.data_ptr()
    alignment = on.alignment
    if (addresses[1] % alignment, addresses[2] % alignment) != known.remainders:
        return None
    with on_its_stream(on, B):
        known.repeat(addresses)
    return result


def spmm_traced(A: object, B: Tensor, alpha: object, beta: object) -> Tensor | None:
    """Return ``A @ B`` in the form that PyTorch's compiler traces, or None for other cases.

    The compiler guards each name that it meets, and each call pays for every guard: the full checks
    of a product contain sixty names.
    """
    if type(A) is not Csr or type(B) is not Tensor or not _are_plain(alpha, beta):
        return None
    if B.is_cpu != (A.executor.xp is np):
        return None
    values = data_of(id(A))
    if B.dim() != 2 or B.layout is not torch.strided:
        return None
    if B.dtype is not values.dtype or not values.dtype.is_floating_point:
        return None
    if B.shape[0] != A.shape[1] or B.device != values.device:
        return None
    indptr, indices = indptr_of(id(A), id(A._pattern)), indices_of(id(A))
    result: Tensor = operators.spmm(indptr, indices, values, B, "auto")
    return result


def remember(A: object, values: Tensor, B: Tensor, result: Tensor) -> None:
    """Remember that the rule's kernel computed ``result = A @ B``, if that can be repeated.

    Parameters
    ----------
    A : object
        The matrix argument.
    values : Tensor
        The values used in the product.
    B, result : Tensor
        The operand as the user gave it, and the result.
    """
    if type(A) is not Csr or type(B) is not Tensor or B.dim() != 2 or not A._pattern.repeats:
        return
    tensors = known_tensors.get(id(A))
    if tensors is None or values is not tensors.values() or _is_watched(B) or not _is_plain(B):
        return
    given = (values, B, result)
    addresses = [t.data_ptr() for t in given]
    alignment = A.executor.alignment
    layout = layout_of(operations.csr_spmm, given, (1.0, 0.0, "auto"), addresses, alignment)
    repeat = A._pattern.repeats.get(layout)
    if repeat is None or addresses[1] in addresses[::2]:
        return
    if len(tensors.products) >= MOST_LAYOUTS:
        tensors.products.clear()
    remainders = (addresses[1] % alignment, addresses[2] % alignment)
    shape = (result.shape[0], result.shape[1])
    tensors.products[_state(B)] = Known(repeat, values, addresses[0], remainders, shape)


def _are_plain(alpha: object, beta: object) -> bool:
    numbers = type(alpha) in (int, float) and type(beta) in (int, float)
    return numbers and alpha == 1 and beta == 0


def _state(B: Tensor) -> Hashable:
    """Return the key of a call without addresses: the layout of B, and the thread's modes."""
    return (
        B.dtype,
        B.shape,
        B.stride(),
        B.get_device(),
        _C._dispatch_keys(B).raw_repr(),
        _C._dispatch_tls_local_include_set().raw_repr(),
        _C._dispatch_tls_local_exclude_set().raw_repr(),
    )


def _is_watched(B: Tensor) -> bool:
    """Return whether a product with B is observed in a way that dispatch keys do not show."""
    return bool(
        (B.requires_grad and torch.is_grad_enabled())
        or forward_ad._current_level >= 0
        or _C._len_torch_function_stack()
        or torch.autograd._profiler_enabled()
    )


def _is_plain(B: Tensor) -> bool:
    """Return whether only autograd precedes the kernel of a product with B."""
    keys = _C._dispatch_keys(B) | _C._dispatch_tls_local_include_set()
    keys = keys - _C._dispatch_tls_local_exclude_set()
    left = (keys & _C._after_autograd_keyset) - _PASSED_BY
    return keys.highestPriorityTypeId() in _FIRST and left.raw_repr() in _KERNELS
