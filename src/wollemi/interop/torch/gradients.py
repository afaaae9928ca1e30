"""The gradients of fusedmm by one kernel, on executors that have such a kernel.

They are PyTorch operators, so the compiler, FakeTensor and ``vmap`` support them: one operator for
every edge function, and one for a softmax with the log-totals from the forward product. These
operators are not differentiable: where gradients of gradients may be requested, :mod:`.operators`
composes gradients of differentiable operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ...core.operations import products as operations
from .blocks import run
from .memory import executor_of
from .patterns import matrix_of
from .register import define_without_derivatives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.operation import Operation
    from .types import Gradients, Inputs

#: The arguments with gradients: values, C, B, D.
_DIFFERENTIABLE = slice(2, 6)


def has_kernel(gradient: Tensor) -> bool:
    """Return whether a kernel on this device computes gradients that need no derivatives."""
    if torch.is_grad_enabled() or forward_ad._current_level >= 0:
        return False
    return executor_of(gradient.device).supports(operations.csr_fusedmm_backward)


def saves_log_totals(operation: Operation, C: Tensor) -> bool:
    """Return whether the forward product on this device stores the inputs of its gradients."""
    if C.device.type == "cpu":
        return executor_of(C.device).supports(operation)
    return C.device.type == "cuda"  # the device may be only described, on a machine without a GPU


def log_totals_like(C: Tensor) -> Tensor:
    """Return an empty tensor with one number per row of ``C``, in float32 for 16-bit dtypes."""
    return C.new_empty(C.shape[:-1], dtype=torch.float32 if C.dtype.itemsize < 4 else C.dtype)


def fusedmm_gradients(
    inputs: Inputs,
    needs_grad: Sequence[bool],
    gradient: Tensor,
    out: Tensor | None = None,
    log_totals: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    """Return the gradient of each argument of ``fusedmm``, or None where not needed.

    Parameters
    ----------
    inputs, needs_grad : sequence
        The arguments, and whether the gradient of each is needed.
    gradient : Tensor
        The gradient of the result.
    out, log_totals : Tensor, optional
        The result, and the log-totals of its softmax, if they were saved.
    """
    *operands, edge, alpha, _ = inputs
    wanted = list(needs_grad[_DIFFERENTIABLE])
    if out is None or log_totals is None:
        found = fusedmm_backward(*operands, gradient, edge, alpha, wanted)
    else:
        found = fusedmm_softmax_backward(*operands, gradient, out, log_totals, alpha, wanted)
    return (None, None, *found_or_none(found, wanted), None, None, None)


def found_or_none(gradients: Sequence[Tensor], wanted: list[bool]) -> Gradients:
    """Return gradients, with None for the ones that were not requested."""
    return tuple(x if want else None for x, want in zip(gradients, wanted, strict=True))


def _kernel(
    indptr: Tensor,
    indices: Tensor,
    values: Tensor | None,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    gradient: Tensor,
    edge: str,
    alpha: float,
    needs_grad: list[bool],
) -> tuple[Tensor, ...]:
    A = matrix_of(indptr, indices, B.shape[-2])
    result = _empty_gradients(indices, (C, B, D), needs_grad)
    operands = [(values, 1), (C, 2), (B, 2), (D, 2), (gradient, 2)]
    made = zip(found_or_none(result, needs_grad), (1, 2, 2, 2), strict=True)
    run(operations.csr_fusedmm_backward, A, [*operands, *made], alpha, edge)
    return result


def _softmax_kernel(
    indptr: Tensor,
    indices: Tensor,
    values: Tensor | None,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    gradient: Tensor,
    out: Tensor,
    log_totals: Tensor,
    alpha: float,
    needs_grad: list[bool],
) -> tuple[Tensor, ...]:
    A = matrix_of(indptr, indices, B.shape[-2])
    result = _empty_gradients(indices, (C, B, D), needs_grad)
    operands = [(values, 1), (C, 2), (B, 2), (D, 2), (gradient, 2), (out, 2), (log_totals, 1)]
    made = zip(found_or_none(result, needs_grad), (1, 2, 2, 2), strict=True)
    run(operations.csr_fusedmm_softmax_backward, A, [*operands, *made], alpha)
    return result


def _empty_gradients(
    indices: Tensor, operands: tuple[Tensor, ...], needs_grad: list[bool]
) -> tuple[Tensor, ...]:
    C = operands[0]
    shapes = ((*C.shape[:-2], indices.shape[0]), *(x.shape for x in operands))
    # an operator cannot return None
    return tuple(
        C.new_empty(shape if want else (0,)) for shape, want in zip(shapes, needs_grad, strict=True)
    )


fusedmm_backward = define_without_derivatives(
    "fusedmm_backward(Tensor indptr, Tensor indices, Tensor? values, Tensor C, Tensor B, Tensor D, "
    "Tensor gradient, str edge, float alpha, bool[] needs_grad) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    kernel=_kernel,
    fake=lambda _, indices, values, C, B, D, *others: _empty_gradients(
        indices, (C, B, D), others[-1]
    ),
    optional=True,
)
fusedmm_softmax_backward = define_without_derivatives(
    "fusedmm_softmax_backward(Tensor indptr, Tensor indices, Tensor? values, Tensor C, Tensor B, "
    "Tensor D, Tensor gradient, Tensor out, Tensor log_totals, float alpha, bool[] needs_grad) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    kernel=_softmax_kernel,
    fake=lambda _, indices, values, C, B, D, *others: _empty_gradients(
        indices, (C, B, D), others[-1]
    ),
    optional=True,
)
