"""Products of matrices and blocks of vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.executor import Array
from ....core.operations import matrix as operations
from ....core.operations import vector
from ....core.statistics import Plan, RowStatistics, lengths_in_numbers
from ...simt import kernels as simt
from .. import launch
from ..arguments import row_distance
from ..base import GpuExecutor, Prepared
from ..maps import run_map
from ..table import kernel
from . import packed, selection
from .shares import Shares

# ---- CSR


def facts_of(executor: GpuExecutor, matrix: Any) -> tuple[RowStatistics, selection.Facts]:
    """Return what the rule wants to know of a CSR matrix, and no more."""
    xp, warp, thresholds = executor.xp, executor.device.warp, executor.thresholds
    nnz, rows = matrix.nnz, matrix.shape[0]
    statistics = statistics_of(executor, matrix.indptr, matrix.shape[1])
    narrow = max(*matrix.shape, nnz) < 2**31
    room = executor.free_memory() if narrow else 0  # packed columns are 32-bit
    facts = selection.Facts(
        packed.UNKNOWN, packed.UNKNOWN, 0, 2**31, 0.0, matrix.dtype.itemsize, room
    )
    if selection.choose_small(statistics, thresholds) is not None or not narrow:
        return statistics, facts
    found = executor.planned(
        rows, packed.paddings, matrix.indptr, warp=warp, enough=thresholds.most_padding
    )
    facts = facts._replace(padding=found[0], sorted_padding=found[1])
    if selection.packs(statistics, facts, thresholds):
        hashes, reach = packed.examine(executor, matrix)
        few = packed.patterns(executor, matrix, hashes, selection.MOST_PATTERNS)
        count = 0 if few is None else int(few[1].size)
        facts = facts._replace(reach=reach, patterns=count)
    elif matrix.dtype.kind == "f" and selection.may_be_hot(statistics, thresholds):
        hot = thresholds.hot_bytes // matrix.dtype.itemsize
        if executor.device.shared_bytes >= thresholds.hot_bytes and matrix.shape[1] > hot:
            facts = facts._replace(hot_share=packed.hot_share(xp, matrix, hot))
    return statistics, facts


def statistics_of(executor: GpuExecutor, indptr: Array, columns: int) -> RowStatistics:
    """Return the statistics of the rows; of many, without copying their lengths to the host."""
    made: RowStatistics = executor.planned(
        int(indptr.size), lengths_in_numbers, indptr, columns=columns
    )
    return made


def make_plan(executor: GpuExecutor, matrix: Any, chosen: str | None = None) -> Plan:
    """Return the plan of a CSR matrix.

    Parameters
    ----------
    chosen : str, optional
        The kernel, where the rule is not to choose.
    """
    statistics, facts = facts_of(executor, matrix)
    if chosen is None:
        name, reason = selection.choose(statistics, facts, executor.thresholds)
    else:
        name, reason = chosen, "as asked for"
    in_order = facts.padding <= executor.thresholds.most_padding
    state: Any = None
    if name.startswith("sell"):
        code = {"sell": packed.ABSOLUTE, "sell-near": packed.NEAR, "sell-pattern": packed.PATTERN}
        state = packed.pack_rows(executor, matrix, code[name], in_order=in_order)
    elif name == "shares":
        state = shares_of(executor, matrix)
    elif name == "balanced":
        state = packed.pack_pieces(executor, matrix)
    elif name == "balanced-hot":
        state = packed.pack_pieces(
            executor, matrix, executor.thresholds.hot_bytes // matrix.dtype.itemsize
        )
    return Plan(name, reason, statistics, state)


@kernel(operations.csr_plan)
def csr_plan(executor: GpuExecutor, A: Any) -> Plan:
    """Find out about the rows, choose, and pack if that is the choice."""
    return make_plan(executor, A)


def _scale(executor: GpuExecutor, y: Array, beta: complex) -> None:
    """Y = beta y, for matrices without entries; beta = 0 does not read y."""
    if beta == 0:
        run_map(executor, vector.fill, y, 0.0)
    else:
        run_map(executor, vector.axpby, y, y, 0.0, beta)


def _rows(executor: GpuExecutor, count: int, block: int = launch.BLOCK) -> int:
    return launch.row_blocks(count, block)


def _subwarp(
    executor: GpuExecutor, lanes: int, k: int, indptr: Array, indices: Array, data: Array
) -> Prepared:
    """Return the launch for blocks of ``k`` columns; it takes ``x, y, alpha, beta``."""
    m = int(indptr.size) - 1
    return executor.prepare_simt(
        simt.csr_subwarp,
        _rows(executor, m * lanes),
        (m, k, indptr, indices, data),
        data.dtype,
        indices.dtype,
        W=lanes,
    )


def shares_of(executor: GpuExecutor, matrix: Any) -> Shares:
    """Return the shares of a CSR matrix; they are the same for any values of one size."""
    itemsize = matrix.dtype.itemsize
    key = ("shares", itemsize)
    if key not in matrix._pattern:
        nbytes = matrix.nbytes + sum(matrix.shape) * itemsize
        matrix._pattern[key] = Shares(executor, matrix.indptr, itemsize, nbytes)
    found: Shares = matrix._pattern[key]
    return found


def _shares(
    executor: GpuExecutor,
    shares: Shares,
    indptr: Array,
    indices: Array,
    data: Array,
    x: Array,
    y: Array,
    alpha: complex,
    beta: complex,
) -> None:
    """Multiply column by column: products of one fill shared memory."""
    partial, counters = 0, 0
    if shares.cut:
        partial, counters = executor.scratch(shares.count * data.itemsize, shares.count)
    for c in range(y.shape[1]):
        columns = x[:, c : c + 1], y[:, c : c + 1]
        arguments = (
            shares.row, shares.entry, indptr, indices, data, *columns, alpha, beta, partial,
            counters,
        )  # fmt: skip
        line = all(row_distance(column) == 1 for column in columns)
        executor.launch_simt(
            simt.csr_shares,
            shares.count,
            arguments,
            data.dtype,
            indices.dtype,
            LINE=int(line),
            KEEP=int(line and shares.kept),
        )


@kernel(operations.csr_spmv)
def csr_spmv(
    executor: GpuExecutor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Run what the plan says for one vector; for several sub-warps, if no row is too long."""
    m, k = y.shape
    plan: Plan = A.plan
    known = plan.prepared.get(k)
    if known is not None and known.arguments[-1] is A.data:
        known(x, y, alpha, beta)
        return
    if m == 0 or k == 0:
        return
    if A.nnz == 0:
        _scale(executor, y, beta)
        return
    line = k == 1 and row_distance(x) == row_distance(y) == 1
    cut = selection.one_by_one(plan.statistics, k, executor.thresholds)
    if isinstance(plan.state, Shares) if line else cut:
        _shares(executor, shares_of(executor, A), A.indptr, A.indices, A.data, x, y, alpha, beta)
    elif plan.kernel == "subwarp" or not line:
        lanes = selection.lanes(plan.statistics, executor.thresholds)
        shared_rows = _subwarp(executor, lanes, k, A.indptr, A.indices, A.data)
        if plan.kernel == "subwarp" and not cut:  # whatever the distances of rows are
            plan.prepared[k] = shared_rows
        shared_rows(x, y, alpha, beta)
    elif plan.kernel == "stream":
        arguments = (m, A.indptr, A.indices, A.data, x, y, alpha, beta)
        # Every block has its rows: with a loop the next rows would wait for the last of these.
        blocks = -(-m // simt.csr_stream.block)
        executor.launch_simt(
            simt.csr_stream, min(blocks, 2**31 - 1), arguments, A.dtype, A.indices.dtype
        )
    else:
        _packed(executor, plan.state, x, y, alpha, beta)


def packed_arguments(
    state: packed.Packed, x: Array, y: Array, alpha: complex, beta: complex, partial: int
) -> tuple[Any, ...]:
    """Return the arguments of ``sell_packed``."""
    return (
        state.lanes, state.slice_ptr, state.codes, state.values, state.target, state.offsets,
        state.pattern_width, x, y, alpha, beta, partial,
    )  # fmt: skip


def _packed(
    executor: GpuExecutor, state: packed.Packed, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    n, dtype = x.shape[0], x.dtype
    sorted_bytes = -(-n * dtype.itemsize // 256) * 256 if state.hot else 0
    scratch, _ = executor.scratch(sorted_bytes + state.pieces * dtype.itemsize)
    partial = scratch + sorted_bytes
    empty = 0 if state.empty_rows is None else int(state.empty_rows.size)
    if state.hot or empty:
        gathered = n if state.hot else 0
        arguments: tuple[Any, ...] = (
            gathered, state.gathered, x, scratch, empty, state.empty_rows, y, beta,
        )  # fmt: skip
        blocks = _rows(executor, max(gathered, empty))
        executor.launch_simt(simt.prepare_balanced, blocks, arguments, dtype)
    if state.hot:
        assert executor.multiply_hot is not None  # a rule with hot columns is that vendor's
        executor.multiply_hot(executor, state, scratch, y, alpha, beta, partial)
    else:
        arguments = packed_arguments(state, x, y, alpha, beta, partial)
        # A block for every 256 lanes: the loop over lanes is for kernels that end in a sum.
        executor.launch_simt(
            simt.sell_packed,
            -(-state.lanes // launch.BLOCK),
            arguments,
            dtype,
            CODE=state.code,
            WIDTH=state.width,
        )
    if state.cut_rows is not None:
        count, many = int(state.cut_rows.size), state.many_pieces
        arguments = (
            count, many, state.cut_rows, state.cut_first, state.cut_last, partial, y, alpha, beta,
        )  # fmt: skip
        blocks = many + _rows(executor, (count - many) * executor.device.warp)
        executor.launch_simt(simt.join_cut_rows, blocks, arguments, dtype)


@kernel(operations.csr_diagonal)
def csr_diagonal(executor: GpuExecutor, A: Any, d: Array) -> None:
    """Let a work-item look through a row."""
    count = int(d.size)
    if count:
        executor.launch_simt(
            simt.csr_diagonal,
            _rows(executor, count),
            (count, A.indptr, A.indices, A.data, d),
            A.dtype,
            A.indices.dtype,
        )


# ---- formats that become rows first


@kernel(operations.csc_spmv)
def csc_spmv(
    executor: GpuExecutor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Use the copy by rows that the matrix keeps."""
    csr_spmv(executor, A.by_rows, x, y, alpha, beta)


class CooPlan(NamedTuple):
    """Where the rows of a Coo begin, and what was chosen for them."""

    indptr: Array
    statistics: RowStatistics
    shares: Shares | None


@kernel(operations.coo_spmv)
def coo_spmv(
    executor: GpuExecutor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Find where rows begin, once; then entries are those of a CSR matrix that is not packed."""
    m, k = y.shape
    if m == 0 or k == 0:
        return
    if A.nnz == 0:
        _scale(executor, y, beta)
        return
    plan = coo_plan(executor, A)
    cut = k > 1 and selection.one_by_one(plan.statistics, k, executor.thresholds)
    if plan.shares is not None and (k == 1 or cut):
        _shares(executor, plan.shares, plan.indptr, A.col, A.data, x, y, alpha, beta)
    else:
        lanes = selection.lanes(plan.statistics, executor.thresholds)
        _subwarp(executor, lanes, k, plan.indptr, A.col, A.data)(x, y, alpha, beta)


def coo_plan(executor: GpuExecutor, matrix: Any) -> CooPlan:
    """Return what is known of the rows of a Coo; the matrix keeps it."""
    if matrix._plan is None:
        xp, thresholds = executor.xp, executor.thresholds
        m, n = matrix.shape
        places = xp.arange(m + 1, dtype=matrix.row.dtype)
        indptr = xp.searchsorted(matrix.row, places).astype(matrix.row.dtype)
        statistics = statistics_of(executor, indptr, n)
        choice = selection.unpacked(statistics, executor.free_memory(), thresholds)
        shares = None
        if choice.kernel != "subwarp":
            itemsize = matrix.dtype.itemsize
            nbytes = matrix.nbytes + (m + n) * itemsize
            shares = Shares(executor, indptr, itemsize, nbytes)
        matrix._plan = CooPlan(indptr, statistics, shares)
    plan: CooPlan = matrix._plan
    return plan


# ---- formats with kernels of their own


@kernel(operations.ell_spmv)
def ell_spmv(
    executor: GpuExecutor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Let a work-item have a row of a column."""
    m, k = y.shape
    if m and k:
        executor.launch_simt(
            simt.ell_rows,
            _rows(executor, m * k),
            (m, k, A.width, A.data, A.indices, x, y, alpha, beta),
            A.dtype,
            A.indices.dtype,
        )


@kernel(operations.sellp_spmv)
def sellp_spmv(
    executor: GpuExecutor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Let a work-item have a lane of a slice of a column."""
    m, k = y.shape
    if m and k:
        executor.launch_simt(
            simt.sellp_rows,
            _rows(executor, m * k),
            (
                m, k, A.slice_size, A.data, A.indices, A.slice_ptr, A.permutation, x, y, alpha,
                beta,
            ),
            A.dtype,
            A.indices.dtype,
        )  # fmt: skip


@kernel(operations.bsr_spmv)
def bsr_spmv(
    executor: GpuExecutor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Let a few lanes have a row of numbers; the compiler knows blocks of up to four columns."""
    m, k = y.shape
    if m == 0 or k == 0:
        return
    blocks, r, c = A.data.shape
    lanes = 4 if blocks * r * c / m < 48 else 16
    executor.launch_simt(
        simt.bsr_subwarp,
        _rows(executor, m * lanes),
        (m, k, r, c, A.indptr, A.indices, A.data, x, y, alpha, beta),
        A.dtype,
        A.indices.dtype,
        W=lanes,
        C=c if c in (2, 3, 4) else 0,
    )


@kernel(operations.dense_spmv)
def dense_spmv(
    executor: GpuExecutor, A: Any, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Use a wave a row for few vectors, and cuBLAS for many: reuse is what it is good at."""
    (m, n), k = A.shape, y.shape[1]
    if m == 0 or k == 0:
        return
    if k > executor.thresholds.dense_columns and n:
        _gemm(executor, A.data, x, y, alpha, beta)
        return
    arguments = (m, n, k, A.data, x, y, alpha, beta)
    executor.launch_simt(
        simt.dense_rows, _rows(executor, m * k * executor.device.warp), arguments, A.dtype
    )


def _gemm(
    executor: GpuExecutor, data: Array, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Y = alpha data x + beta y by cuBLAS, which sees the transposes: y^T = x^T data^T."""
    if executor.dry:
        return
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
