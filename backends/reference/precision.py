"""Convert blocks of vectors to a lower precision and back."""

from __future__ import annotations

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import precision as operations
from .table import kernel
from .vector import store


def usable(scale: Array) -> Array:
    """Return the scales, with 1 in place of values that cannot be divisors."""
    return np.where((scale > 0) & np.isfinite(scale), scale, scale.dtype.type(1))


@kernel(operations.lower)
def lower(executor: Executor, x: Array, scale: Array, y: Array) -> None:
    """Divide by the scale and round."""
    y[...] = x / usable(scale)


@kernel(operations.raised)
def raised(
    executor: Executor, x: Array, scale: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Widen and multiply by the scale."""
    store(y, x.astype(y.dtype) * usable(scale), alpha, beta)
