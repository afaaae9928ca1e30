"""Launches of CSR matrix-vector products, for each kind of plan state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ....core.calls import SpmvCall
from ....core.executor import Array
from ....core.operations import vector
from ....core.store import Key
from ...simt import kernels as simt
from ...simt.operands import row_distance
from .. import launch
from ..base import GpuExecutor
from ..maps import run_map
from ..prepared import Prepared, Recorded, prepare
from . import packed
from .row_blocks import RowBlocks

if TYPE_CHECKING:
    import numpy as np

    from ....core.formats.compressed import CompressedRows
    from ....core.formats.csr import Csr

_ROW_BLOCKS: Key[RowBlocks] = Key("row blocks")


def scale(executor: GpuExecutor, y: Array, beta: complex) -> None:
    """Set y = beta y, for matrices without entries; beta = 0 does not read y."""
    if beta == 0:
        run_map(executor, vector.fill, (y, 0.0))
    else:
        run_map(executor, vector.axpby, (y, y, 0.0, beta))


def subwarp(
    executor: GpuExecutor,
    lanes: int,
    k: int,
    indptr: Array,
    indices: Array,
    data: Array,
    dtype: np.dtype[Any] | None = None,
) -> Prepared:
    """Return a launch for blocks of ``k`` columns that takes ``x, y, alpha, beta``.

    ``dtype`` is the dtype of the blocks, if stored values have another one.
    """
    m = int(indptr.size) - 1
    return prepare(
        executor,
        simt.csr_subwarp,
        launch.row_blocks(m * lanes),
        (m, k, indptr, indices, data),
        data.dtype if dtype is None else dtype,
        indices.dtype,
        data.dtype,
        data=data,
        W=lanes,
    )


def row_blocks_of(executor: GpuExecutor, matrix: Csr) -> RowBlocks:
    """Return the row blocks of a CSR matrix, which depend only on the size of a value."""
    itemsize = matrix.dtype.itemsize
    nbytes = matrix.nbytes + sum(matrix.shape) * itemsize
    return matrix._pattern.get(
        _ROW_BLOCKS.of_size(itemsize),
        lambda: RowBlocks(executor, matrix.indptr, matrix.dtype, nbytes),
    )


def multiply_row_blocks(
    executor: GpuExecutor,
    row_blocks: RowBlocks,
    indptr: Array,
    indices: Array,
    call: SpmvCall,
) -> None:
    """Multiply column by column: the products of one column fill the shared memory."""
    data, x, y = call.A.data, call.x, call.y
    partial, counters = 0, 0
    if row_blocks.cut:
        partial, counters = executor.scratch(*row_blocks_scratch(row_blocks, x.itemsize))
    for c in range(y.shape[1]):
        columns = x[:, c : c + 1], y[:, c : c + 1]
        arguments = (
            row_blocks.row, row_blocks.entry, indptr, indices, data, *columns,
            call.alpha, call.beta, partial, counters,
        )  # fmt: skip
        line = all(row_distance(column) == 1 for column in columns)
        executor.launch_simt(
            simt.csr_adaptive,
            row_blocks.count,
            arguments,
            x.dtype,
            indices.dtype,
            data.dtype,
            LINE=int(line),
            KEEP=int(line and row_blocks.kept),
        )


def row_blocks_scratch(row_blocks: RowBlocks, itemsize: int) -> tuple[int, int]:
    """Return the bytes and counters of scratch memory for row blocks with cut rows."""
    return row_blocks.count * itemsize, row_blocks.count


def row_blocks_launch(executor: GpuExecutor, row_blocks: RowBlocks, A: CompressedRows) -> Prepared:
    """Return the launch for contiguous vectors, if no row is cut."""
    return prepare(
        executor,
        simt.csr_adaptive,
        row_blocks.count,
        (row_blocks.row, row_blocks.entry, A.indptr, A.indices, A.data),
        A.dtype,
        A.indices.dtype,
        A.data.dtype,
        last=(0, 0),
        data=A.data,
        in_lines=True,
        LINE=1,
        KEEP=int(row_blocks.kept),
    )


def stream(executor: GpuExecutor, A: CompressedRows) -> Prepared:
    """Return the launch that loads short rows contiguously into shared memory."""
    m = A.shape[0]
    # Each block has one set of rows: in a loop, the next rows would wait for the slowest of these.
    blocks = -(-m // simt.csr_stream.block)
    return prepare(
        executor,
        simt.csr_stream,
        min(blocks, 2**31 - 1),
        (m, A.indptr, A.indices, A.data),
        A.dtype,
        A.indices.dtype,
        A.data.dtype,
        data=A.data,
        in_lines=True,
    )


def packed_launch(
    executor: GpuExecutor, state: packed.Packed, dtype: np.dtype[Any], partial: int
) -> Prepared:
    """Return the launch for the lanes of a packed copy; cut rows get partial sums."""
    # One block per 256 lanes: the loop over lanes is only for kernels that end in a sum.
    return prepare(
        executor,
        simt.sell_packed,
        -(-state.lanes // launch.BLOCK),
        (
            state.lanes, state.slice_ptr, state.codes, state.values, state.target, state.offsets,
            state.pattern_width,
        ),
        dtype,
        stored=state.values.dtype,
        last=(partial,),
        in_lines=True,
        CODE=state.code,
        WIDTH=state.width,
    )  # fmt: skip


def packed_scratch(state: packed.Packed, columns: int, itemsize: int) -> tuple[int, int]:
    """Return the bytes of scratch memory for a sorted x, and for the sums of row segments."""
    sorted_bytes = -(-columns * itemsize // 256) * 256 if state.cached else 0
    return sorted_bytes, state.pieces * itemsize


def packed_record(
    executor: GpuExecutor,
    A: CompressedRows,
    state: packed.Packed,
    compute: Callable[[SpmvCall], None],
) -> Recorded:
    """Return a recording of a product by a packed copy that needs several launches."""
    nbytes = sum(packed_scratch(state, A.shape[1], A.dtype.itemsize))
    return Recorded(executor, A.dtype, compute, (nbytes, 1))


def multiply_packed(
    executor: GpuExecutor,
    state: packed.Packed,
    call: SpmvCall,
    multiply_cached: Callable[..., None] | None = None,
) -> None:
    """Gather x if its columns are renumbered, multiply, and sum the cut rows.

    Parameters
    ----------
    multiply_cached : callable, optional
        Multiplies with columns in shared memory; ``state.cached`` is their number.
    """
    x, y, alpha, beta = call.x, call.y, call.alpha, call.beta
    n, dtype = x.shape[0], x.dtype
    sorted_bytes, sums_bytes = packed_scratch(state, n, dtype.itemsize)
    scratch, _ = executor.scratch(sorted_bytes + sums_bytes)
    partial = scratch + sorted_bytes
    empty = 0 if state.empty_rows is None else int(state.empty_rows.size)
    if state.cached or empty:
        gathered = n if state.cached else 0
        arguments: tuple[Any, ...] = (
            gathered, state.gathered, x, scratch, empty, state.empty_rows, y, beta,
        )  # fmt: skip
        blocks = launch.row_blocks(max(gathered, empty))
        executor.launch_simt(simt.prepare_balanced, blocks, arguments, dtype)
    if multiply_cached is not None:
        multiply_cached(executor, state, scratch, y, alpha, beta, partial)
    else:
        packed_launch(executor, state, dtype, partial)(call)
    if state.cut_rows is not None:
        count, many = int(state.cut_rows.size), state.many_pieces
        arguments = (
            count, many, state.cut_rows, state.cut_first, state.cut_last, partial, y, alpha, beta,
        )  # fmt: skip
        blocks = many + launch.row_blocks((count - many) * executor.device.warp)
        executor.launch_simt(simt.join_cut_rows, blocks, arguments, dtype)
