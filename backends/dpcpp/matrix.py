"""Products of matrices in formats other than CSR with blocks of vectors.

On CPU devices a work-group is one work-item with a part of the rows. GPUs use the kernels of
``backends/simt``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.calls import SpmvCall
from ...core.operations import matrix as operations
from ...core.statistics import row_statistics
from ...core.store import Key
from ..simt import kernels as simt
from . import spmv, templates
from .array import UsmArray
from .table import kernel

if TYPE_CHECKING:
    from .executor import DpcppExecutor

#: Row pointers of a Coo matrix, and the partition of its rows.
_ROWS: Key[tuple[UsmArray, Any]] = Key("rows of a Coo")


@kernel(operations.csc_spmv)
def csc_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Multiply by the cached row-major copy of the matrix: sums then have a fixed order."""
    spmv.csr_spmv(executor, SpmvCall(A.by_rows, x, y, alpha, beta))


@kernel(operations.coo_spmv)
def coo_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Multiply as CSR: the entries are sorted by row, and the row pointers are computed once."""
    if not y.size:
        return
    indptr, state = A._pattern.get(_ROWS, lambda: _rows_of(executor, A))
    by_rows = SimpleNamespace(shape=A.shape, indptr=indptr, indices=A.col, data=A.data)
    multiply = spmv.by_blocks if executor.one_item_groups else spmv.by_lanes
    multiply(executor, state, by_rows, x, y, alpha, beta)


def _rows_of(executor: DpcppExecutor, A: Any) -> tuple[UsmArray, Any]:
    """Return the row pointers of a Coo matrix, and its partition (CPU) or lanes per row (GPU)."""
    rows = executor.seen_by_host(A.row)
    on_host = np.searchsorted(rows, np.arange(A.shape[0] + 1)).astype(rows.dtype)
    indptr = executor.from_host(on_host)
    if executor.one_item_groups:
        return indptr, spmv.partition(executor, on_host)
    return indptr, spmv.lanes(executor, row_statistics(executor, indptr, A.shape[1]))


# ---- other formats


@kernel(operations.ell_spmv)
def ell_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Assign rows that are adjacent in memory to each work-item."""
    k = y.shape[1]
    arguments = (k, A.width, A.data, A.indices, x, y, alpha, beta)
    _rows(executor, templates.ell_cpu, simt.ell_rows, arguments, A)


@kernel(operations.sellp_spmv)
def sellp_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Assign a lane of a slice to each work-item; on a CPU, whole slices."""
    k = y.shape[1]
    arguments = (
        k, A.slice_size, A.data, A.indices, A.slice_ptr, A.permutation, x, y, alpha, beta,
    )  # fmt: skip
    _rows(executor, templates.sellp_cpu, simt.sellp_rows, arguments, A)


def _rows(
    executor: DpcppExecutor, on_cpu: Any, on_gpu: Any, arguments: tuple[Any, ...], A: Any
) -> None:
    m, k = A.shape[0], arguments[0]
    if m * k == 0:
        return
    cpu = executor.one_item_groups
    extents = A.shape if cpu else A.shape[:1]
    executor.launch(
        on_cpu if cpu else on_gpu,
        templates.CPU_FORMATS if cpu else templates.gpu_csr(executor.facts.wave),
        executor.grid(int(A.data.size) * k if cpu else m * k),
        (*extents, *arguments),
        A.data.dtype,
        A.indices.dtype,
    )


@kernel(operations.bsr_spmv)
def bsr_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Assign block rows to each work-item; on a GPU, a few work-items share a row of numbers."""
    m, k = y.shape
    if m * k == 0:
        return
    r, c = A.blocksize
    matrix = (A.indptr, A.indices, A.data, x, y, alpha, beta)
    if executor.one_item_groups:
        executor.launch(
            templates.bsr_cpu,
            templates.CPU_FORMATS,
            executor.grid(int(A.data.size) * k),
            (m // r, k, r, c, *matrix),
            x.dtype,
            A.indices.dtype,
        )
        return
    executor.launch(
        simt.bsr_subwarp,
        templates.gpu_csr(executor.facts.wave),
        executor.grid(m * templates.BSR_LANES),
        (m, k, r, c, *matrix),
        x.dtype,
        A.indices.dtype,
        W=templates.BSR_LANES,
        C=0,
    )


@kernel(operations.dense_spmv)
def dense_spmv(
    executor: DpcppExecutor, A: Any, x: UsmArray, y: UsmArray, alpha: complex, beta: complex
) -> None:
    """Assign rows to each work-item; on a GPU, to each wave."""
    m, n = A.shape
    k = y.shape[1]
    if m * k == 0:
        return
    cpu = executor.one_item_groups
    executor.launch(
        templates.dense_cpu if cpu else simt.dense_rows,
        templates.CPU_DENSE if cpu else templates.GPU_DENSE,
        executor.grid(m * n * k if cpu else m * k * executor.facts.wave),
        (m, n, k, A.data, x, y, alpha, beta),
        x.dtype,
    )


@kernel(operations.csr_diagonal)
def csr_diagonal(executor: DpcppExecutor, A: Any, d: UsmArray) -> None:
    """Sum each row's entries on the diagonal."""
    count = int(d.shape[0])
    if count == 0:
        return
    cpu = executor.one_item_groups
    executor.launch(
        templates.csr_diagonal_cpu if cpu else simt.csr_diagonal,
        templates.CPU_CSR if cpu else templates.GPU_DIAGONAL,
        executor.grid(count),
        (count, A.indptr, A.indices, A.data, d),
        A.data.dtype,
        A.indices.dtype,
    )
