"""Define PyTorch operators: one kernel each, with the rules for PyTorch's transforms.

Every operator is linear or smooth in its floating-point tensors. It takes integers that describe a
pattern, and returns one new tensor, optionally followed by tensors that serve only its derivatives
and are not differentiable. All hooks for autograd, forward mode, ``vmap``, autocast, FakeTensor and
the compiler are registered with the dispatcher, so no transform traces into the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import _C, Tensor
from torch._C._functorch import (
    get_single_level_autograd_function_allowed,
    set_single_level_autograd_function_allowed,
)
from torch.autograd import forward_ad
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.autograd.function import _SingleLevelFunction
from torch.library import Library

from ...core.errors import UnsupportedOperation

if TYPE_CHECKING:
    from torch._C import DispatchKeySet
    from torch._ops import OpOverload
    from torch.autograd.function import FunctionCtx

    from .types import BatchInfo, Gradients, Inputs, OperatorArgument

LIBRARY = Library("wollemi", "DEF")

Operator = Callable[..., Any]

#: Dispatch names of devices with kernels; PyTorch calls AMD devices "CUDA" too.
DEVICES = ("CPU", "CUDA")

#: The dispatch keys below autograd in a call without modes and transforms.
_KERNELS_ALONE = {
    _C.DispatchKeySet(getattr(_C.DispatchKey, device)).raw_repr() for device in DEVICES
}


def define(
    schema: str,
    *,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    backward: Callable[..., tuple[Any, ...]],
    jvp: Callable[..., Tensor],
    autocast: bool = True,
    recorded: Callable[..., Tensor | None] | None = None,
) -> Any:
    """Define an operator ``torch.ops.wollemi.<name>`` and return it.

    Parameters
    ----------
    schema : str
        PyTorch's signature; integer tensors come first and are constants.
    kernel : callable
        Computes the result: a tensor, or a tuple of the result and tensors for its derivatives.
    fake : callable
        Returns an empty result of the right shape, dtype and device.
    backward : callable
        ``backward(inputs, needs_grad, result, gradient)`` returns a gradient per input.
    jvp : callable
        ``jvp(inputs, tangents, result)`` returns the tangent of the result; for a tuple, the
        tangent of its first tensor.
    autocast : bool
        Whether autocast lowers the precision of the operands, as it does for dense products.
    recorded : callable, optional
        ``recorded(keyset, *inputs)`` computes the result if gradients may be requested, by an
        operator that saves more for them. It returns None if there is no such operator for these
        inputs.
    """
    op = define_without_derivatives(schema, kernel=kernel, fake=fake)
    name = _name_in(schema)
    places = _places_of_tensors(op)
    differentiable = _differentiable(op, kernel, backward, jvp, recorded, places)
    LIBRARY.impl(name, differentiable, "Autograd", with_keyset=True)
    if autocast:
        for device in DEVICES:
            LIBRARY.impl(name, _lowering(op, device), f"Autocast{device}")
    return op


def define_without_derivatives(
    schema: str, *, kernel: Callable[..., Any], fake: Callable[..., Any], optional: bool = False
) -> Any:
    """Define and return an operator ``torch.ops.wollemi.<name>`` without derivatives.

    Parameters
    ----------
    schema : str
        PyTorch's signature.
    kernel, fake : callable
        As in :func:`define`.
    optional : bool
        Whether the last argument is a list of booleans that selects the results. Unselected results
        are empty, and ``vmap`` adds no axis to them.
    """
    name = _name_in(schema)
    LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    for device in DEVICES:
        LIBRARY.impl(name, kernel, device)
    qualified = f"wollemi::{name}"
    torch.library.register_fake(qualified, fake, lib=LIBRARY)
    op = getattr(torch.ops.wollemi, name).default
    torch.library.register_vmap(qualified, _batching(op, optional), lib=LIBRARY)
    return op


def _name_in(schema: str) -> str:
    return schema.partition("(")[0]


def _places_of_tensors(op: OpOverload) -> tuple[int, ...]:
    """Return the positions of an operator's tensor arguments."""
    kinds = [str(argument.type).removeprefix("Optional[") for argument in op._schema.arguments]
    return tuple(place for place, kind in enumerate(kinds) if kind.startswith("Tensor"))


def _differentiable(
    op: OpOverload,
    kernel: Callable[..., Any],
    backward: Callable[..., Gradients],
    jvp: Callable[..., Tensor],
    recorded: Callable[..., Tensor | None] | None,
    places: tuple[int, ...],
) -> Callable[..., Any]:
    alone: dict[int, bool] = {}

    def is_alone(keyset: DispatchKeySet) -> bool:
        """Return whether only the kernel handles a call: no mode and no transform is active."""
        keys = keyset.raw_repr()
        found = alone.get(keys)
        if found is None:
            left = (keyset & _C._after_autograd_keyset).raw_repr()
            found = alone[keys] = left in _KERNELS_ALONE
        return found

    def below(keyset: DispatchKeySet, args: tuple[Any, ...]) -> Any:
        with _C._AutoDispatchBelowAutograd():
            return op.redispatch(keyset & _C._after_autograd_keyset, *args)

    # As for PyTorch's own operators, the dispatcher has unwrapped the tensors of torch.func's
    # transforms to the current level; a Function would start again at the outermost level.
    class Differentiable(_SingleLevelFunction):
        @staticmethod
        def forward(
            ctx: FunctionCtx, keyset: DispatchKeySet, recording: bool, *args: OperatorArgument
        ) -> Any:
            if is_alone(keyset):
                out = kernel(*args)
            else:
                # PyTorch disables both for the body of a function; outer transforms continue.
                with torch.set_grad_enabled(recording), _set_fwd_grad_enabled(True):
                    out = below(keyset, args)
            _keep(ctx, places, args, out)
            return out

        @staticmethod
        def backward(ctx: FunctionCtx, *gradients: Tensor) -> Any:
            inputs, out = _saved(ctx)
            if gradients[0] is None:
                return (None,) * len(ctx.needs_input_grad)
            found = backward(inputs, ctx.needs_input_grad[2:], out, gradients[0])
            return (None, None, *found)

        @staticmethod
        def jvp(ctx: FunctionCtx, *tangents: Tensor | None) -> Any:
            inputs, out = _saved(ctx)
            tangent = jvp(inputs, tangents[2:], out)
            return (tangent, *(None for _ in out[1:])) if ctx.several else tangent

    def autograd(keyset: DispatchKeySet, *args: OperatorArgument) -> Any:
        records = torch.is_grad_enabled() and _asks_for_gradients(args, places)
        forward = forward_ad._current_level >= 0
        if records and not forward and recorded is not None:
            found = recorded(keyset, *args)
            if found is not None:
                return found
        if records or forward:
            before = get_single_level_autograd_function_allowed()
            set_single_level_autograd_function_allowed(True)
            try:
                return Differentiable.apply(keyset, torch.is_grad_enabled(), *args)
            finally:
                set_single_level_autograd_function_allowed(before)
        # A second pass through the dispatcher would take as long as a small product.
        if is_alone(keyset):
            return kernel(*args)
        return below(keyset, args)

    return autograd


def _asks_for_gradients(args: tuple[Any, ...], places: tuple[int, ...]) -> bool:
    for place in places:
        given = args[place]
        if given is not None and given.requires_grad:
            return True
    return False


def _keep(
    ctx: FunctionCtx,
    places: tuple[int, ...],
    args: tuple[Any, ...],
    out: Tensor | tuple[Tensor, ...],
) -> None:
    """Save the tensors for derivatives: arguments, the result, and its auxiliary tensors."""
    ctx.places = [i for i in places if args[i] is not None]
    ctx.others = [None if i in places else a for i, a in enumerate(args)]
    ctx.several = isinstance(out, tuple)
    made = out if ctx.several else (out,)
    if ctx.several:
        ctx.mark_non_differentiable(*made[1:])
        ctx.set_materialize_grads(False)  # do not create zeros for missing gradients
    tensors = [args[i] for i in ctx.places]
    ctx.save_for_backward(*tensors, *made)
    if forward_ad._current_level >= 0:
        ctx.save_for_forward(*tensors, *made)


def _saved(ctx: FunctionCtx) -> tuple[list[Any], Any]:
    saved, count = ctx.saved_tensors, len(ctx.places)
    inputs, made = list(ctx.others), saved[count:]
    for place, tensor in zip(ctx.places, saved[:count], strict=True):
        inputs[place] = tensor
    return inputs, made if ctx.several else made[0]


def _batching(op: OpOverload, optional: bool) -> Callable[..., tuple[Any, Any]]:
    def vmap(info: BatchInfo, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        found = op(*with_leading_axis(info, in_dims, args))
        if optional:
            return found, tuple(0 if wanted else None for wanted in args[-1])
        return found, (0,) * len(found) if isinstance(found, tuple) else 0

    return vmap


def with_leading_axis(
    info: BatchInfo, in_dims: tuple[int | None, ...], args: Inputs
) -> list[OperatorArgument]:
    """Return arguments under ``vmap`` with its axis leading in all floating-point tensors."""
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


def _lowering(op: OpOverload, device: str) -> Callable[..., Tensor]:
    keys = _C.DispatchKeySet(getattr(_C.DispatchKey, f"Autocast{device}"))

    def autocast(*args: OperatorArgument) -> Tensor:
        dtype = torch.get_autocast_dtype(device.lower())
        with _C._ExcludeDispatchKeyGuard(keys):
            lowered: Tensor = op(*(_lower(a, dtype) for a in args))
        return lowered

    return autocast


def _lower(arg: OperatorArgument, dtype: torch.dtype) -> OperatorArgument:
    if isinstance(arg, Tensor) and arg.is_floating_point() and arg.dtype is not torch.float64:
        return arg.to(dtype)
    return arg
