"""Products of sparse matrices: the rows that no table of a group of lanes holds.

Their columns are found as bits of a mask, a window of columns after the other. Values are added up
at their positions in the row, a range of its entries after the other. A block of work-items has a
row, or several blocks share it. See ``simt/long_rows.hpp``.
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

#: Columns of a window, and entries of a range, at most: as many as shared memory holds. Tests have
#: fewer, so that rows of small matrices have several.
WINDOW = RANGE = 1 << 20

#: Blocks that share rows, so that few rows occupy a whole GPU; a giant row has at least
#: ``OF_GIANT``. Estimates: ``wollemi bench suite structure`` measures them.
BLOCKS, OF_GIANT = 8192, 8
#: Columns of the product from which a share of a row pays for a scan of all entries of the left
#: row; ranges have about the same number.
OF_SHARE = 1024


@dataclass(frozen=True)
class LongRows:
    """Rows of a product that blocks have for themselves.

    Parameters
    ----------
    count : int
        How many rows.
    rows : Array or None
        Which ones; None for all rows in their order.
    shares : int
        How many blocks have each of them.
    """

    count: int
    rows: Array | None
    shares: int


def shared(count: int, rows: Array | None, columns: int, *, giant: bool) -> LongRows:
    """Return rows of at most ``columns`` columns with the blocks that have them."""
    wanted = max(OF_GIANT if giant else 1, BLOCKS // count)
    return LongRows(count, rows, min(-(-columns // OF_SHARE), wanted) or 1)


def count(executor: GpuExecutor, long: LongRows, A: Csr, B: Array, lengths: Array) -> Array:
    """Store how many columns each row has; return how many are before each share of it."""
    found = executor.allocate((long.count * long.shares,), A.indices.dtype)
    given = (long.count, long.shares, B.shape[1], WINDOW, long.rows, *_pattern(A, B), found)
    _launch(executor, simt.count_long, long, given, np.float32, A.indices.dtype)
    joined = (long.count, long.shares, long.rows, found, lengths)
    blocks = launch.row_blocks(long.count, simt.join_shares.block)
    executor.launch_simt(simt.join_shares, blocks, joined, np.float32, A.indices.dtype)
    return found


def place(
    executor: GpuExecutor,
    long: LongRows,
    found: Array,
    A: Csr,
    B: Array,
    indptr: Array,
    most: int,
    indices: Array,
) -> None:
    """Store the sorted columns of rows that have more than ``most``."""
    bounds = (long.count, long.shares, B.shape[1], WINDOW, long.rows)
    given = (*bounds, *_pattern(A, B), found, indptr, most, indices)
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
    """Store the values of rows with known columns."""
    factors = (A.indptr, A.indices, A.data, B.indptr, B.indices, B.data)
    given = (long.count, long.shares, RANGE, long.rows, *factors, indptr, indices, data)
    _launch(executor, simt.refill_long, long, given, data.dtype, indices.dtype)


def _pattern(A: Csr, B: Csr) -> tuple[Array, ...]:
    return A.indptr, A.indices, B.indptr, B.indices


def _launch(
    executor: GpuExecutor,
    kernel: SimtKernel,
    long: LongRows,
    given: Sequence[LaunchOperand],
    value: Dtype,
    index: DTypeLike,
) -> None:
    blocks = launch.row_blocks(long.count * long.shares, 1)
    executor.launch_simt(kernel, blocks, given, value, index)
