"""Blocks written as their columns."""

from typing import Any

import numpy as np


def columns(*vectors: Any) -> np.ndarray[Any, Any]:
    """Return the block with the columns ``vectors``, of floats unless they are complex."""
    block = np.array(vectors).T
    return np.ascontiguousarray(block if block.dtype.kind == "c" else block.astype(float))


def unset(*shape: int, dtype: Any = float) -> np.ndarray[Any, Any]:
    """Return an array that must be overwritten before it is looked at."""
    return np.full(shape, np.nan if np.dtype(dtype).kind in "fc" else 99, dtype)
