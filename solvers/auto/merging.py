"""Combine the columns of two results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...core.linop import LinOp
from ...core.operations import vector
from ...core.result import Result
from ...core.small_values import as_dtype
from ...core.vector_conversions import vector_converter


def merged(old: Result, new: Result, keep: list[int], A: LinOp, b: Any) -> Result:
    """Return ``new`` with the columns ``keep`` of ``old`` instead of its own."""
    executor, converter = A.executor, vector_converter(A)
    newer, older = converter.to_blocks(new=new.x, old=old.x)
    assert newer is not None and older is not None
    x = executor.copy(newer)
    take(executor, x, as_dtype(executor, older, x.dtype), keep)
    stops, iterations, norm = (
        list(new.stops),
        new.column_iterations.copy(),
        new.residual_norm.copy(),
    )
    length = max(old.residuals.shape[0], new.residuals.shape[0])
    residuals = [
        np.pad(r.residuals, ((0, length - r.residuals.shape[0]), (0, 0)), constant_values=np.nan)
        for r in (old, new)
    ]
    for c in keep:
        stops[c], iterations[c] = old.stops[c], old.column_iterations[c]
        norm[c] = old.residual_norm[c]
        residuals[1][:, c] = residuals[0][:, c]
    used = max(int(iterations.max(initial=0)) + 1, 1)
    return replace(
        new,
        x=converter.from_block(x, b),
        stops=stops,
        column_iterations=iterations,
        residual_norm=norm,
        residuals=residuals[1][:used],
    )


def take(executor: Any, into: Any, source: Any, columns: list[int]) -> None:
    """Copy columns of one block into another."""
    for c in columns:
        executor.run(vector.axpby, source[:, c : c + 1], into[:, c : c + 1], 1.0, 0.0)
