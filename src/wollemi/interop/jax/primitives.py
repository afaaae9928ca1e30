"""Define JAX primitives: one kernel each, with the rules for JAX's transforms.

Operands are the arrays of a pattern (none if it is held), followed by dense operands. Each dense
operand has one leading axis: as many blocks as the result, or one block for all. Therefore,
``vmap`` folds its axis into the blocks, and nothing is repeated in memory. :mod:`.lowering` defines
how compiled programs call a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching

from . import lowering
from .device_kernels import DeviceKernel
from .host_kernels import HostKernel, blocks_of
from .lowering import NativeCall
from .sharding import along_first_axis, whole

if TYPE_CHECKING:
    from jax.core import ShapedArray

    from .patterns import Held


def define(
    kernel: HostKernel,
    shape: Callable[..., tuple[int, ...]],
    native: NativeCall | None = None,
    device: DeviceKernel | None = None,
) -> Primitive:
    """Define a primitive.

    Parameters
    ----------
    kernel : HostKernel
        The kernel that computes the primitive on NumPy arrays.
    shape : callable
        ``shape(rows, columns, entries, *operands, **options)`` returns the shape of one result
        block.
    native : NativeCall, optional
        The native handler for programs compiled for CPUs.
    device : callable, optional
        The function that makes the steps in programs compiled for GPUs.
    """
    primitive = Primitive(f"wollemi_{kernel.name}")

    def abstract(
        *avals: ShapedArray, pattern: Held | None, columns: int, **options: object
    ) -> ShapedArray:
        if pattern is None:
            rows, entries = avals[0].shape[0] - 1, avals[1].shape[0]
            avals = avals[2:]
        else:
            rows, entries = pattern.matrix.shape[0], pattern.matrix.nnz
        made = (blocks_of(avals), *shape(rows, columns, entries, *avals, **options))
        return jax.core.ShapedArray(made, avals[-1].dtype)

    primitive.def_abstract_eval(abstract)
    batching.primitive_batchers[primitive] = batching_rule(primitive)
    lowering.register(primitive, kernel, native, device)
    return primitive


def batching_rule(primitive: Primitive) -> Callable[..., tuple[Any, int]]:
    """Return the rule that folds the axis of ``vmap`` into the blocks of operands."""

    def batch(
        args: Sequence[jax.Array], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, int]:
        of_pattern = 0 if params["pattern"] is not None else 2
        moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
        mapped = next(x for x, d in zip(moved, dims, strict=True) if d is not None)
        moved = [whole(x) for x in moved]
        if any(d is not None for d in dims[:of_pattern]):
            return along_first_axis(_one_by_one(primitive, moved, dims, params), mapped), 0
        dense, there = moved[of_pattern:], [d is not None for d in dims[of_pattern:]]
        size = next(x.shape[0] for x, batched in zip(dense, there, strict=True) if batched)
        own = [x.shape[1 if batched else 0] for x, batched in zip(dense, there, strict=True)]
        blocks = next((count for count in own if count != 1), 1)
        folded = [
            _folded(x, batched, size, blocks) for x, batched in zip(dense, there, strict=True)
        ]
        out = primitive.bind(*moved[:of_pattern], *folded, **params)
        out = out.reshape(size, blocks, *out.shape[1:])
        return along_first_axis(out, mapped), 0  # JAX expects this of all results of a vmap

    return batch


def _folded(x: jax.Array, batched: bool, size: int, blocks: int) -> Any:
    """Return an operand with a first axis over the batch and the blocks within it."""
    if not batched:
        if x.shape[0] == 1:
            return x
        return jnp.broadcast_to(x, (size, *x.shape)).reshape(-1, *x.shape[1:])
    inner = x.shape[2:]
    return jnp.broadcast_to(x, (size, blocks, *inner)).reshape(size * blocks, *inner)


def _one_by_one(
    primitive: Primitive,
    args: Sequence[jax.Array],
    dims: Sequence[int | None],
    params: dict[str, Any],
) -> Any:
    """Run a batch of different patterns, one after the other."""
    batched = [x for x, d in zip(args, dims, strict=True) if d is not None]

    def one(given: Sequence[jax.Array]) -> jax.Array:
        ahead = iter(given)
        return primitive.bind(
            *(x if d is None else next(ahead) for x, d in zip(args, dims, strict=True)), **params
        )

    return jax.lax.map(one, batched)


# ---- derivatives


def given(tangent: jax.Array | ad.Zero) -> jax.Array | None:
    """Return a tangent, or None if it is zero."""
    return None if type(tangent) is ad.Zero else tangent


def total(out: jax.Array, *terms: jax.Array | None) -> jax.Array | ad.Zero:
    """Return the sum of the terms that are not None, as a tangent of ``out``."""
    there = [term for term in terms if term is not None]
    return sum(there[1:], start=there[0]) if there else ad.Zero.from_primal_value(out)


def multilinear(primitive: Primitive, *transposes: Callable[..., Any]) -> None:
    """Declare that a primitive is linear in each of its dense operands.

    ``transposes[i](gradient, arrays, others, **params)`` returns the gradient for dense operand
    ``i``, given the arrays of the pattern and all dense operands (None at position ``i``).
    """
    count = len(transposes)

    def jvp(
        primals: Sequence[jax.Array], tangents: Sequence[jax.Array], **params: Any
    ) -> tuple[jax.Array, jax.Array | ad.Zero]:
        out = primitive.bind(*primals, **params)
        first = len(primals) - count
        terms = [
            primitive.bind(*primals[:i], tangents[i], *primals[i + 1 :], **params)
            for i in range(first, len(primals))
            if given(tangents[i]) is not None
        ]
        return out, total(out, *terms)

    def transpose(gradient: jax.Array, *primals: jax.Array, **params: Any) -> list[Any]:
        first = len(primals) - count
        found: list[Any] = [None] * len(primals)
        others = [None if ad.is_undefined_primal(x) else x for x in primals[first:]]
        for i, rule in enumerate(transposes, first):
            if not ad.is_undefined_primal(primals[i]):
                continue
            aval = primals[i].aval
            if type(gradient) is ad.Zero:
                found[i] = ad.Zero(aval)
            else:
                made = rule(gradient, primals[:first], others, **params)
                found[i] = as_blocks(made, aval.shape[0])
        return found

    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose


def as_blocks(gradient: jax.Array, blocks: int) -> Any:
    """Return the gradient of an operand with ``blocks`` blocks; one block for all gets the sum."""
    if blocks == 1 and gradient.shape[0] != 1:
        return gradient.sum(0, keepdims=True)
    return gradient
