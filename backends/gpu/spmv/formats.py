"""Products of matrices in formats other than CSR with blocks of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....core.calls import SpmvCall
from ....core.executor import Array
from ....core.operations import matrix as operations
from ....core.statistics import RowStatistics
from ....core.store import Key
from ...simt import kernels as simt
from ...simt.operands import row_distance
from .. import launch
from ..base import GpuExecutor
from ..constants import SpmvConstants
from ..table import kernel
from . import selection
from .csr import csr_spmv
from .measured import statistics_of
from .multiply import multiply_row_blocks, scale, subwarp
from .row_blocks import RowBlocks

if TYPE_CHECKING:
    from ....core.formats.coo import Coo
    from ....core.formats.csc import Csc
    from ....core.formats.csr import Csr
    from ....core.formats.ell import Ell
    from ....core.formats.hybrid import Hybrid
    from ....core.formats.sellp import Sellp


@kernel(operations.csr_diagonal)
def csr_diagonal(executor: GpuExecutor, A: Csr, d: Array) -> None:
    """Assign one row to each work-item."""
    count = int(d.size)
    if count:
        executor.launch_simt(
            simt.csr_diagonal,
            launch.row_blocks(count),
            (count, A.indptr, A.indices, A.data, d),
            A.dtype,
            A.indices.dtype,
        )


# ---- formats that are converted to rows first


@kernel(operations.csc_spmv)
def csc_spmv(
    executor: GpuExecutor, A: Csc, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Multiply by the row-major copy that the matrix keeps."""
    csr_spmv(executor, A.by_rows, x, y, alpha, beta)


class CooPlan(NamedTuple):
    """The first entry of each row of a Coo matrix, and the chosen kernel."""

    indptr: Array
    statistics: RowStatistics
    row_blocks: RowBlocks | None


@kernel(operations.coo_spmv)
def coo_spmv(
    executor: GpuExecutor, A: Coo, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Find the row pointers once; then multiply as an unpacked CSR matrix."""
    m, k = y.shape
    if m == 0 or k == 0:
        return
    if A.nnz == 0:
        scale(executor, y, beta)
        return
    plan = coo_plan(executor, A)
    # The launches read only the matrix's values.
    call = SpmvCall(A, x, y, alpha, beta)  # type: ignore[arg-type]
    cut = k > 1 and selection.one_by_one(plan.statistics, k, executor.constants.of(SpmvConstants))
    if plan.row_blocks is not None and (k == 1 or cut):
        multiply_row_blocks(executor, plan.row_blocks, plan.indptr, A.col, call)
    else:
        lanes = selection.lanes(plan.statistics, executor.constants.of(SpmvConstants))
        subwarp(executor, lanes, k, plan.indptr, A.col, A.data)(call)


_COO: Key[CooPlan] = Key("rows of a Coo")


def coo_plan(executor: GpuExecutor, matrix: Coo) -> CooPlan:
    """Return the plan for the rows of a Coo matrix, cached with the matrix."""
    return matrix._pattern.get(_COO, lambda: _coo_plan(executor, matrix))


def _coo_plan(executor: GpuExecutor, matrix: Coo) -> CooPlan:
    xp, rules = executor.xp, executor.constants.of(SpmvConstants)
    m, n = matrix.shape
    places = xp.arange(m + 1, dtype=matrix.row.dtype)
    indptr = xp.searchsorted(matrix.row, places).astype(matrix.row.dtype)
    statistics = statistics_of(executor, indptr, n)
    choice = selection.unpacked(statistics, executor.free_memory(), rules)
    row_blocks = None
    if choice.kernel != "subwarp":
        itemsize = matrix.dtype.itemsize
        row_blocks = RowBlocks(executor, indptr, matrix.dtype, matrix.nbytes + (m + n) * itemsize)
    return CooPlan(indptr, statistics, row_blocks)


# ---- formats with kernels of their own


@kernel(operations.ell_spmv)
def ell_spmv(
    executor: GpuExecutor, A: Ell, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Assign a row and a column of the block to each work-item."""
    m, k = y.shape
    if m and k:
        executor.launch_simt(
            simt.ell_rows,
            launch.row_blocks(m * k),
            (m, k, A.width, A.data, A.indices, x, y, alpha, beta),
            A.dtype,
            A.indices.dtype,
        )


@kernel(operations.hybrid_spmv)
def hybrid_spmv(
    executor: GpuExecutor, A: Hybrid, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Assign a row of both parts to each work-item, unless the longest remainder is long."""
    (m, k), ell, coo = y.shape, A.ell, A.coo
    if m == 0 or k == 0:
        return
    same = coo.nnz and coo.col.dtype == ell.indices.dtype
    rest = coo_plan(executor, coo) if same else None
    if rest is None or not selection.one_pass(
        rest.statistics, x.itemsize, executor.constants.of(SpmvConstants)
    ):
        ell_spmv(executor, ell, x, y, alpha, beta)
        coo_spmv(executor, coo, x, y, alpha, 1.0)
        return
    executor.launch_simt(
        simt.hybrid_rows,
        launch.row_blocks(m * k),
        (
            m, k, ell.width, ell.data, ell.indices, rest.indptr, coo.col, coo.data, x, y, alpha,
            beta,
        ),
        A.dtype,
        ell.indices.dtype,
    )  # fmt: skip


@kernel(operations.sellp_spmv)
def sellp_spmv(
    executor: GpuExecutor, A: Sellp, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Assign a lane of a slice and a column of the block to each work-item."""
    m, k = y.shape
    if m and k:
        executor.launch_simt(
            simt.sellp_rows,
            launch.row_blocks(m * k),
            (
                m, k, A.slice_size, A.data, A.indices, A.slice_ptr, A.permutation, x, y, alpha,
                beta,
            ),
            A.dtype,
            A.indices.dtype,
        )  # fmt: skip


@kernel(operations.bsr_spmv)
def bsr_spmv(
    executor: GpuExecutor, A: Csr, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Assign a row of numbers to a few lanes; blocks of up to 4 columns are compiled in."""
    m, k = y.shape
    if m == 0 or k == 0:
        return
    blocks, r, c = A.data.shape
    lanes = 4 if blocks * r * c / m < 48 else 16
    executor.launch_simt(
        simt.bsr_subwarp,
        launch.row_blocks(m * lanes),
        (m, k, r, c, A.indptr, A.indices, A.data, x, y, alpha, beta),
        A.dtype,
        A.indices.dtype,
        W=lanes,
        C=c if c in (2, 3, 4) else 0,
    )


@kernel(operations.dense_spmv)
def dense_spmv(
    executor: GpuExecutor, A: Csr, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Use one wave per row for few vectors or in programs; cuBLAS, which reuses rows, for many."""
    (m, n), k = A.shape, y.shape[1]
    if m == 0 or k == 0:
        return
    if k > executor.constants.of(SpmvConstants).dense_columns and n and not executor.making_program:
        _gemm(executor, A.data, x, y, alpha, beta)
        return
    arguments = (m, n, k, A.data, x, y, alpha, beta)
    executor.launch_simt(
        simt.dense_rows, launch.row_blocks(m * k * executor.device.warp), arguments, A.dtype
    )


def _gemm(
    executor: GpuExecutor, data: Array, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Set y = alpha data x + beta y with cuBLAS, which sees the transposes: y^T = x^T data^T."""
    from cupy.cuda import cublas, device

    m, n = data.shape
    dtype = np.dtype(data.dtype)
    gemm = {"f": cublas.sgemm, "d": cublas.dgemm, "F": cublas.cgemm, "D": cublas.zgemm}[dtype.char]
    factor, share = np.array(alpha, dtype), np.array(beta, dtype)
    gemm(
        device.get_cublas_handle(),
        cublas.CUBLAS_OP_N,
        cublas.CUBLAS_OP_N,
        y.shape[1],
        m,
        n,
        factor.ctypes.data,
        x.data.ptr,
        row_distance(x),
        data.data.ptr,
        n,
        share.ctypes.data,
        y.data.ptr,
        row_distance(y),
    )
