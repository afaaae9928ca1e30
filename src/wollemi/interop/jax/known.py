"""Patterns that must be known at trace time, and values at known positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ...core.errors import InvalidArgument, UnsupportedDtype
from ...core.formats import Csr
from ...solvers.differentiable.systems import AssembledPattern
from .patterns import Held, Sparse, sparse_of

if TYPE_CHECKING:
    import jax
    from jax.typing import ArrayLike


def held_of(A: Csr) -> Held:
    """Return the pattern of a matrix as a constant of traced functions."""
    held = sparse_of(A).held
    assert held is not None
    return held


def known_pattern(sparse: Sparse, function: str, name: str = "A") -> Held:
    """Return the pattern of an operand.

    Raises
    ------
    InvalidArgument
        If the pattern is an argument of the compiled function.
    """
    if sparse.held is None:
        raise InvalidArgument(
            f"{function}: the pattern of {name} is an argument of the compiled function; make it a "
            "constant: close over a wl.Csr or over the indices, and pass values="
        )
    return sparse.held


def weights_of(sparse: Sparse, values: ArrayLike | None, function: str) -> jax.Array:
    """Return the given values, or the matrix's values, which must be float32 or float64.

    Raises
    ------
    UnsupportedDtype
        If they have another dtype.
    """
    result = sparse.values(float) if values is None else sparse.checked(values)
    if result.dtype not in (jnp.float32, jnp.float64):
        raise UnsupportedDtype(f"{function}: expected float32 or float64, got {result.dtype}")
    return result


def assembled_values(assembled: AssembledPattern, *numbers: jax.Array) -> jax.Array:
    """Return the values of an assembled pattern, shape (..., nnz), computed from its parts."""
    whole = jnp.concatenate(numbers, axis=-1)
    zeros = jnp.zeros((*whole.shape[:-1], assembled.pattern.nnz), whole.dtype)
    return zeros.at[..., assembled.positions].add(whole)
