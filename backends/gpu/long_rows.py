"""Products of sparse matrices: the rows that do not fit into the hash tables of groups of lanes.

Their columns are collected as bits of a mask, one window of columns after the other. Values are
summed at their positions in the row, one range of the row's entries after the other. A block
processes a row, or several blocks share it. See ``simt/long_rows.hpp``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...core.executor import Array
from ..simt import kernels as simt
from . import launch
from .base import GpuExecutor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike

    from ...core.formats.csr import Csr
    from ..unified.wrappers import SimtKernel
    from .types import Dtype, LaunchOperand

#: Upper bounds of columns per window and of entries per range, limited by shared memory. Tests use
#: smaller values, so that rows of small matrices have several windows and ranges.
WINDOW = RANGE = 1 << 20

#: Target number of blocks that share rows, so that few rows occupy a whole GPU; a giant row gets at
#: least ``OF_GIANT`` blocks. Estimates: ``wollemi bench suite structure`` measures them.
BLOCKS, OF_GIANT = 8192, 8
#: Columns of the product per share of a row for which a scan of all entries of the left row pays;
#: ranges have about this number of columns.
OF_SHARE = 1024


@dataclass(frozen=True)
class LongRows:
    """Rows of a product that are assigned to blocks.

    Parameters
    ----------
    count : int
        The number of rows.
    rows : Array or None
        The rows; None for all rows in order.
    shares : int
        The number of blocks per row.
    """

    count: int
    rows: Array | None
    shares: int


def shared(count: int, rows: Array | None, columns: int, *, giant: bool) -> LongRows:
    """Assign blocks to rows of at most ``columns`` columns."""
    wanted = max(OF_GIANT if giant else 1, BLOCKS // count)
    return LongRows(count, rows, min(-(-columns // OF_SHARE), wanted) or 1)


def count(executor: GpuExecutor, long: LongRows, A: Csr, B: Array, lengths: Array) -> Array:
    """Store the number of columns of each row; return the number before each share of a row."""
    result = executor.allocate((long.count * long.shares,), A.indices.dtype)
    given = (long.count, long.shares, B.shape[1], WINDOW, long.rows, *_pattern(A, B), result)
    _launch(executor, simt.count_long, long, given, np.float32, A.indices.dtype)
    joined = (long.count, long.shares, long.rows, result, lengths)
    blocks = launch.row_blocks(long.count, simt.join_shares.block)
    executor.launch_simt(simt.join_shares, blocks, joined, np.float32, A.indices.dtype)
    return result


def place(
    executor: GpuExecutor,
    long: LongRows,
    lengths: Array,
    A: Csr,
    B: Array,
    indptr: Array,
    most: int,
    indices: Array,
) -> None:
    """Store the sorted columns of the rows with more than ``most`` columns."""
    bounds = (long.count, long.shares, B.shape[1], WINDOW, long.rows)
    given = (*bounds, *_pattern(A, B), lengths, indptr, most, indices)
    _launch(executor, simt.place_long, long, given, np.float32, indices.dtype)


def add_up(
    executor: GpuExecutor,
    long: LongRows,
    A: Csr,
    B: Array,
    indptr: Array,
    indices: Array,
    data: Array,
) -> None:
    """Compute the values of rows with known columns."""
    factors = (A.indptr, A.indices, A.data, B.indptr, B.indices, B.data)
    given = (long.count, long.shares, RANGE, long.rows, *factors, indptr, indices, data)
    _launch(executor, simt.refill_long, long, given, data.dtype, indices.dtype)


def _pattern(A: Csr, B: Csr) -> tuple[Array, ...]:
    return A.indptr, A.indices, B.indptr, B.indices


def _launch(
    executor: GpuExecutor,
    kernel: SimtKernel,
    long: LongRows,
    operands: Sequence[LaunchOperand],
    value: Dtype,
    index: DTypeLike,
) -> None:
    blocks = launch.row_blocks(long.count * long.shares, 1)
    executor.launch_simt(kernel, blocks, operands, value, index)
