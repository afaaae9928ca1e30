"""The gradients of fusedmm by one kernel, on executors that have it.

It is an operator of PyTorch's, so that the compiler, FakeTensor and ``vmap`` go through it. It has
no derivatives: where gradients of gradients may be asked for, :mod:`.operators` makes gradients of
operators that have.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ...operations import products as operations
from .blocks import run
from .memory import executor_of
from .patterns import matrix_of
from .register import DEVICES, LIBRARY, with_leading_axis

#: The arguments that have gradients: values, C, B, D.
_DIFFERENTIABLE = slice(2, 6)


def has_kernel(gradient: Tensor) -> bool:
    """Return whether gradients that need no derivatives come from a kernel on this device."""
    if torch.is_grad_enabled() or forward_ad._current_level >= 0:
        return False
    return executor_of(gradient.device).supports(operations.csr_fusedmm_backward)


def fusedmm_gradients(inputs: Any, needs: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradient of each argument of ``fusedmm``, None where there is none.

    Parameters
    ----------
    inputs, needs : sequence
        The arguments, and whether the gradient of each is needed.
    gradient : Tensor
        Of the result.
    """
    indptr, indices, values, C, B, D, edge, alpha, _ = inputs
    wanted = list(needs[_DIFFERENTIABLE])
    found = fusedmm_backward(indptr, indices, values, C, B, D, gradient, edge, alpha, wanted)
    given = (x if want else None for x, want in zip(found, wanted, strict=True))
    return None, None, *given, None, None, None


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
    needs: list[bool],
) -> tuple[Tensor, ...]:
    A = matrix_of(indptr, indices, B.shape[-2])
    found = _fake(indptr, indices, values, C, B, D, gradient, edge, alpha, needs)
    operands = [(values, 1), (C, 2), (B, 2), (D, 2), (gradient, 2)]
    made = (x if want else None for x, want in zip(found, needs, strict=True))
    run(
        operations.csr_fusedmm_backward,
        A,
        [*operands, *zip(made, (1, 2, 2, 2), strict=True)],
        alpha,
        edge,
    )
    return found


def _fake(
    indptr: Tensor,
    indices: Tensor,
    values: Tensor | None,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    gradient: Tensor,
    edge: str,
    alpha: float,
    needs: list[bool],
) -> tuple[Tensor, ...]:
    shapes = ((*C.shape[:-2], indices.shape[0]), C.shape, B.shape, D.shape)
    # an operator returns no None
    return tuple(
        C.new_empty(shape if want else (0,)) for shape, want in zip(shapes, needs, strict=True)
    )


def _vmap(
    info: Any, in_dims: tuple[int | None, ...], *args: Any
) -> tuple[tuple[Tensor, ...], tuple[int | None, ...]]:
    needs = args[-1]
    found = fusedmm_backward(*with_leading_axis(info, in_dims, args))
    return found, tuple(0 if want else None for want in needs)


LIBRARY.define(
    "fusedmm_backward(Tensor indptr, Tensor indices, Tensor? values, Tensor C, Tensor B, Tensor D, "
    "Tensor gradient, str edge, float alpha, bool[] needs) -> (Tensor, Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
for _device in DEVICES:
    LIBRARY.impl("fusedmm_backward", _kernel, _device)
torch.library.register_fake("wollemi::fusedmm_backward", _fake, lib=LIBRARY)
torch.library.register_vmap("wollemi::fusedmm_backward", _vmap, lib=LIBRARY)
fusedmm_backward = torch.ops.wollemi.fusedmm_backward.default
