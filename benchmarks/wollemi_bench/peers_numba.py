"""Loops that a user would write and Numba compiles."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def kernels() -> dict[str, Any]:
    """Return compiled loops over rows, which threads share."""
    import numba

    @numba.njit(parallel=True, fastmath=True)
    def spmv(indptr: Any, indices: Any, data: Any, x: Any, y: Any) -> None:
        for i in numba.prange(y.size):
            total = y.dtype.type(0)
            for e in range(indptr[i], indptr[i + 1]):
                total += data[e] * x[indices[e]]
            y[i] = total

    @numba.njit(parallel=True, fastmath=True)
    def spmm(indptr: Any, indices: Any, data: Any, B: Any, C: Any) -> None:
        for i in numba.prange(C.shape[0]):
            C[i] = 0
            for e in range(indptr[i], indptr[i + 1]):
                j, a = indices[e], data[e]
                for k in range(C.shape[1]):
                    C[i, k] += a * B[j, k]

    @numba.njit(parallel=True, fastmath=True)
    def sddmm(indptr: Any, indices: Any, C: Any, D: Any, values: Any) -> None:
        for i in numba.prange(indptr.size - 1):
            for e in range(indptr[i], indptr[i + 1]):
                j, total = indices[e], values.dtype.type(0)
                for k in range(C.shape[1]):
                    total += C[i, k] * D[j, k]
                values[e] = total

    return {"spmv": spmv, "spmm": spmm, "sddmm": sddmm}
