"""Arrays on meshes with explicit axes: kernels take and return unsharded arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec, reshard

if TYPE_CHECKING:
    from jax.typing import ArrayLike


def whole(x: ArrayLike) -> jax.Array:
    """Return an array with all elements on every device.

    Along axes of type ``Auto``, the compiler itself gathers operands. Along ``Explicit`` axes, the
    sharding is part of an array's type, so gathering is a step of the program.
    """
    result = jnp.asarray(x)
    if not _is_sharded(result):
        return result
    return reshard(result, NamedSharding(jax.typeof(result).sharding.mesh, PartitionSpec()))


def along_first_axis(x: jax.Array, like: jax.Array) -> jax.Array:
    """Return an array with its first axis sharded like the first axis of ``like``."""
    if not _is_sharded(like):
        return x
    sharding = jax.typeof(like).sharding
    return reshard(x, NamedSharding(sharding.mesh, PartitionSpec(sharding.spec[0])))


def _is_sharded(x: jax.Array) -> bool:
    sharding = jax.typeof(x).sharding
    explicit = AxisType.Explicit in sharding.mesh.axis_types
    return explicit and any(axis is not None for axis in sharding.spec)
