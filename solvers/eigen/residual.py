"""Residuals of eigenpairs on the executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import real_dtype
from .ritz import residual

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

Numbers = np.ndarray[Any, Any]


def norms(
    executor: Executor, AX: Array, BX: Array, R: Array, values: Numbers
) -> tuple[Numbers, Numbers]:
    """Set ``R = AX - BX diag(values)``; return norms of the columns of ``R`` and of ``BX``."""
    real, k = real_dtype(AX.dtype), int(AX.shape[1])
    of_residual, of_basis = (executor.zeros((k,), real) for _ in range(2))
    value = executor.from_host(np.ascontiguousarray(values, dtype=real))
    residual.run(executor, ax=AX, bx=BX, r=R, value=value, r2=of_residual, b2=of_basis)
    found = executor.transfer(of_residual, of_basis).read()
    squares = [np.array(square, np.float64) for square in found]
    return np.sqrt(squares[0]), np.sqrt(squares[1])
