"""Inputs of traced edge functions in the form that kernels read: one array for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import is_narrow
from ..edge_functions.symbols import Untraceable
from ..edge_functions.trace import EdgeFunction, TracedEdgeFunction, trace
from ..errors import InvalidArgument, ShapeMismatch
from ..executor import Array, Executor
from ..formats import Csr
from ..formats.mask import Mask
from ..operands import native, to_host


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which kernels sum products of a dtype."""
    return np.dtype(np.float32) if is_narrow(dtype) else dtype


def traced_or_refused(
    edge: EdgeFunction, A: Csr | Mask, of_scores: tuple[int, ...]
) -> TracedEdgeFunction:
    """Return the trace of an edge function.

    Raises
    ------
    InvalidArgument
        If the function cannot be traced; the message gives the reason.
    """
    try:
        return trace(edge, A.shape, of_scores, lists_entries=not isinstance(A, Mask))
    except Untraceable as reason:
        raise InvalidArgument(
            f"edge: this function cannot be a part of a kernel: {reason}. Use arithmetic, "
            "comparisons, np.where, np.exp and the like, and entries.softmax last; "
            "wollemi.interop.torch.fusedmm runs every function of a matrix with entries"
        ) from None


def inputs_of(
    traced: TracedEdgeFunction, executor: Executor, A: Csr | Mask, blocks: int, dtype: np.dtype[Any]
) -> tuple[Array | None, Array | None, Array | None]:
    """Return the inputs of a traced function: arrays (b, r, m), (b, c, n), (b, e, nnz), or None."""
    m, n = A.shape
    given = ((traced.of_rows, m), (traced.of_columns, n), (traced.of_entries, A.nnz))
    rows, columns, entries = (
        _stacked(executor, arrays, length, blocks, dtype) for arrays, length in given
    )
    return rows, columns, entries


def _stacked(
    executor: Executor, arrays: Sequence[Any], length: int, blocks: int, dtype: np.dtype[Any]
) -> Array | None:
    if not arrays:
        return None
    for array in arrays:
        if len(array.shape) > 2 or (len(array.shape) == 2 and array.shape[0] not in (1, blocks)):
            raise ShapeMismatch(
                f"edge: expected arrays of shape ({length},) or ({blocks}, {length}) in the "
                f"function, got {tuple(array.shape)}"
            )
    if any(executor.owns(array) for array in arrays) and hasattr(executor.xp, "stack"):
        xp = executor.xp
        parts = [native(executor, array, "edge").astype(dtype) for array in arrays]
        shape = (max(part.shape[0] if part.ndim == 2 else 1 for part in parts), length)
        stacked = xp.stack([xp.broadcast_to(part, shape) for part in parts], axis=1)
    else:
        hosted = [np.asarray(to_host(array)).astype(dtype) for array in arrays]
        many = max(part.shape[0] if part.ndim == 2 else 1 for part in hosted)
        whole = [np.broadcast_to(part, (many, length)) for part in hosted]
        stacked = executor.from_host(np.stack(whole, axis=1))
    if stacked.shape[0] == blocks:
        return stacked
    return executor.xp.broadcast_to(stacked, (blocks, *stacked.shape[1:]))
