"""Operators of PyTorch's: one kernel, and the rules by which its transforms go through it.

Every operator is linear or smooth in its tensors of floating-point numbers, takes integers that
describe a pattern, and returns one new tensor. What autograd, forward mode, ``vmap``, autocast,
FakeTensor and the compiler ask is registered for the dispatcher, so that none of them
looks into the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import _C, Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.autograd.function import _SingleLevelFunction
from torch.library import Library

from ...errors import UnsupportedOperation

LIBRARY = Library("wollemi", "DEF")

Operator = Callable[..., Tensor]

#: Devices whose tensors a kernel takes; AMD's are "CUDA" to PyTorch.
DEVICES = ("CPU", "CUDA")

#: What is left of a call below autograd where no mode and no transform waits for it.
_KERNELS_ALONE = {
    _C.DispatchKeySet(getattr(_C.DispatchKey, device)).raw_repr() for device in DEVICES
}


def define(
    schema: str,
    *,
    kernel: Callable[..., Tensor],
    fake: Callable[..., Tensor],
    backward: Callable[..., tuple[Any, ...]],
    jvp: Callable[..., Tensor],
    autocast: bool = True,
) -> Operator:
    """Define an operator ``torch.ops.wollemi.<name>`` and return it.

    Parameters
    ----------
    schema : str
        PyTorch's signature; integer tensors come first and are constants.
    kernel : callable
        Computes the result.
    fake : callable
        Returns an empty result of the right shape, dtype and device.
    backward : callable
        ``backward(inputs, needs, result, gradient)`` returns a gradient for each input.
    jvp : callable
        ``jvp(inputs, tangents, result)`` returns the tangent of the result.
    autocast : bool
        Whether autocast lowers the precision of its operands, as that of dense products.
    """
    name = schema.partition("(")[0]
    LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    for device in DEVICES:
        LIBRARY.impl(name, kernel, device)
    qualified = f"wollemi::{name}"
    torch.library.register_fake(qualified, fake, lib=LIBRARY)
    op = getattr(torch.ops.wollemi, name).default
    LIBRARY.impl(name, _differentiable(op, kernel, backward, jvp), "Autograd", with_keyset=True)
    torch.library.register_vmap(qualified, _batching(op), lib=LIBRARY)
    if autocast:
        for device in DEVICES:
            LIBRARY.impl(name, _lowering(op, device), f"Autocast{device}")
    found: Operator = op
    return found


def _differentiable(
    op: Any, kernel: Callable[..., Tensor], backward: Any, jvp: Any
) -> Callable[..., Tensor]:
    def below(keyset: Any, args: tuple[Any, ...]) -> Tensor:
        with _C._AutoDispatchBelowAutograd():
            out: Tensor = op.redispatch(keyset & _C._after_autograd_keyset, *args)
        return out

    # The dispatcher has unwrapped the tensors of torch.func's transforms to the level at hand, as
    # for operators of PyTorch's own; a Function would begin at the outermost level again.
    class Differentiable(_SingleLevelFunction):
        @staticmethod
        def forward(ctx: Any, keyset: Any, recording: bool, *args: Any) -> Tensor:
            # PyTorch turns both off for the body of a function; transforms around this one go on.
            with torch.set_grad_enabled(recording), _set_fwd_grad_enabled(True):
                out = below(keyset, args)
            ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
            ctx.others = [None if isinstance(a, Tensor) else a for a in args]
            tensors = [args[i] for i in ctx.places]
            ctx.save_for_backward(*tensors, out)
            ctx.save_for_forward(*tensors, out)
            return out

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> Any:
            inputs, out = _saved(ctx)
            found = backward(inputs, ctx.needs_input_grad[2:], out, gradients[0])
            return (None, None, *found)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            inputs, out = _saved(ctx)
            return jvp(inputs, tangents[2:], out)

    def autograd(keyset: Any, *args: Any) -> Tensor:
        recorded = torch.is_grad_enabled() and any(
            isinstance(a, Tensor) and a.requires_grad for a in args
        )
        if recorded or forward_ad._current_level >= 0:
            with enable_single_level_autograd_function():
                made: Tensor = Differentiable.apply(keyset, torch.is_grad_enabled(), *args)
            return made
        # A second way through the dispatcher would take as long as a small product.
        if (keyset & _C._after_autograd_keyset).raw_repr() in _KERNELS_ALONE:
            return kernel(*args)
        return below(keyset, args)

    return autograd


def _saved(ctx: Any) -> tuple[list[Any], Tensor]:
    *tensors, out = ctx.saved_tensors
    inputs = list(ctx.others)
    for place, tensor in zip(ctx.places, tensors, strict=True):
        inputs[place] = tensor
    return inputs, out


def _batching(op: Any) -> Callable[..., tuple[Tensor, int]]:
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        return op(*with_leading_axis(info, in_dims, args)), 0

    return vmap


def with_leading_axis(info: Any, in_dims: tuple[int | None, ...], args: Any) -> list[Any]:
    """Return arguments under ``vmap`` with its axis in front of all floating-point tensors."""
    dense = []
    for arg, dim in zip(args, in_dims, strict=True):
        if not isinstance(arg, Tensor):
            dense.append(arg)
        elif not arg.is_floating_point():
            if dim is not None:
                raise UnsupportedOperation(
                    "vmap over patterns: the rows of a batch share one pattern; put graphs of "
                    "different patterns on the diagonal of one"
                )
            dense.append(arg)
        elif dim is None:
            dense.append(arg.expand(info.batch_size, *arg.shape))
        else:
            dense.append(arg.movedim(dim, 0))
    return dense


def _lowering(op: Any, device: str) -> Callable[..., Tensor]:
    keys = _C.DispatchKeySet(getattr(_C.DispatchKey, f"Autocast{device}"))

    def autocast(*args: Any) -> Tensor:
        dtype = torch.get_autocast_dtype(device.lower())
        with _C._ExcludeDispatchKeyGuard(keys):
            lowered: Tensor = op(*(_lower(a, dtype) for a in args))
        return lowered

    return autocast


def _lower(arg: Any, dtype: torch.dtype) -> Any:
    wide = isinstance(arg, Tensor) and arg.is_floating_point() and arg.dtype is not torch.float64
    return arg.to(dtype) if wide else arg
