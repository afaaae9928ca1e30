"""Parts of plans for many rows, computed by wollemi's own kernels.

CuPy compiles each of its functions at the first use on a machine, some 0.09 seconds each: a first
product of two million rows used 25 to 31 of them (H200). The functions of this module return the
same results as the functions of :mod:`.packed`, :mod:`.row_blocks` and
:mod:`wollemi.core.statistics` for few rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core.executor import Array
from ....core.statistics import RowStatistics, in_numbers
from ...simt import kernels
from ...simt import plan_kernels as simt
from .. import launch
from ..base import GpuExecutor
from ..scans import running_sum
from .selection import UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ...unified.wrappers import SimtKernel
    from ..types import LaunchOperand

#: Sort rows within this many slices: 1024 rows keep adjacent reads of x adjacent.
WINDOW = 32


def _launch(
    executor: GpuExecutor,
    kernel: SimtKernel,
    items: int,
    index: DTypeLike,
    *operands: LaunchOperand,
    **constants: int,
) -> None:
    """Launch a kernel on indices, without values, for a number of work-items."""
    blocks = launch.row_blocks(items, kernel.block)
    executor.launch_simt(kernel, blocks, operands, np.float32, index, **constants)


class Numbers(NamedTuple):
    """The longest lane, nonempty lanes, squared lengths, entries with and without padding."""

    longest: int
    filled: int
    squares: int
    slices: int
    entries: int


def measure(executor: GpuExecutor, indptr: Array, order: Array | None = None) -> Numbers:
    """Return the numbers of rows in their order, or in a given order."""
    numbers = executor.allocate((6,), np.int64)
    _measure(executor, indptr, order, numbers)
    return _numbers(executor.to_host(numbers))


def _measure(executor: GpuExecutor, indptr: Array, order: Array | None, numbers: Array) -> None:
    m = int(indptr.size) - 1
    blocks = _resident(executor, m, simt.measure_rows)
    place, counter = executor.scratch(blocks * 6 * 8)
    given = (m, indptr, order, numbers, place, counter)
    executor.launch_simt(simt.measure_rows, blocks, given, np.float32, indptr.dtype)


def _resident(executor: GpuExecutor, items: int, kernel: SimtKernel) -> int:
    """Return enough blocks for a number of work-items, at most the resident ones."""
    most = executor.device.multiprocessors * launch.RESIDENT
    return min(launch.row_blocks(items, kernel.block), most)


def _numbers(results: np.ndarray[Any, Any]) -> Numbers:
    longest, filled, low, high, slices, entries = (int(n) for n in results)
    return Numbers(longest, filled, low + (high << 24), slices, entries)


class RowLengths:
    """The lengths of rows; each order is measured once.

    Parameters
    ----------
    executor : GpuExecutor
    indptr : array
    """

    def __init__(self, executor: GpuExecutor, indptr: Array) -> None:
        self.executor, self.indptr = executor, indptr

    @cached_property
    def as_they_come(self) -> Numbers:
        """The numbers of rows in their order."""
        return measure(self.executor, self.indptr)

    @cached_property
    def order(self) -> Array:
        """The rows sorted by decreasing length within windows; equal lengths keep their order."""
        m, window = int(self.indptr.size) - 1, self.executor.device.warp * WINDOW
        order = self.executor.allocate((m,), np.int32)
        self.executor.launch_simt(
            simt.order_windows,
            launch.row_blocks(m, window),
            (m, self.indptr, order),
            np.float32,
            self.indptr.dtype,
            WINDOW=window,
        )
        return order

    @cached_property
    def in_windows(self) -> Numbers:
        """The numbers of rows in this order."""
        return measure(self.executor, self.indptr, self.order)

    def statistics(self, columns: int) -> RowStatistics:
        """Return the same as :func:`~wollemi.core.statistics.lengths_in_numbers`."""
        m, found = int(self.indptr.size) - 1, self.as_they_come
        return in_numbers(m, columns, found.entries, found.squares, found.longest, found.filled)

    def paddings(self, enough: float) -> tuple[float, float]:
        """Return packed entries per entry, for rows in order and, if that is too much, sorted.

        The padding of sorted rows is not computed if rows in order have at most ``enough``.
        """
        entries = max(self.as_they_come.entries, 1)
        as_they_come = self.as_they_come.slices / entries
        if as_they_come <= enough:
            return as_they_come, UNKNOWN
        return as_they_come, self.in_windows.slices / entries


def lanes_of_rows(executor: GpuExecutor, indptr: Array, order: Array | None) -> tuple[Array, Array]:
    """Return the first entries and lengths of lanes that are rows, in order or as given."""
    m = int(indptr.size) - 1
    start, length = executor.allocate((m,), np.int64), executor.allocate((m,), np.int32)
    _launch(executor, simt.lay_lanes, m, indptr.dtype, m, indptr, order, start, length)
    return start, length


def slice_pointers(executor: GpuExecutor, length: Array) -> Array:
    """Return the beginning of each slice of lanes with these lengths, and the end of the last."""
    lanes = int(length.size)
    widths = executor.allocate((-(-lanes // executor.device.warp),), np.int64)
    _launch(executor, simt.measure_slices, lanes, np.int64, lanes, length, widths)
    return running_sum(executor, widths)


def equal_slices(executor: GpuExecutor, slices: int, width: int) -> Array:
    """Return the beginning of each slice of equal width, and the end of the last."""
    pointers = executor.allocate((slices + 1,), np.int64)
    _launch(executor, simt.equal_slices, slices + 1, np.int64, slices, width, pointers)
    return pointers


class FoundRowPatterns(NamedTuple):
    """The patterns of rows, as offsets from the diagonal.

    Attributes
    ----------
    reach : int
        The largest offset.
    of_row : array or None
        The pattern of each row; None if there are more patterns than allowed.
    model : array or None
        An example row for each pattern.
    """

    reach: int
    of_row: Array | None = None
    model: Array | None = None

    @property
    def distinct(self) -> int:
        """The number of patterns; 0 if there are too many."""
        return 0 if self.model is None else int(self.model.size)


def examine(executor: GpuExecutor, indptr: Array, indices: Array, reach: Array) -> Array:
    """Return a hash of each row's offsets from the diagonal; update ``reach`` to the largest."""
    m = int(indptr.size) - 1
    hashes = executor.allocate((m,), np.int64)
    _launch(executor, simt.examine_rows, m, indptr.dtype, m, indptr, indices, hashes, reach)
    return hashes


def reach_of_rows(executor: GpuExecutor, indptr: Array, indices: Array) -> int:
    """Return the largest distance of an entry from the diagonal."""
    reach = executor.zeros((1,), np.int32)
    examine(executor, indptr, indices, reach)
    return int(executor.to_host(reach)[0])


#: Cells of the table in which kernels find patterns, and of the numbers after it.
_CELLS, _COUNTS, _LENGTHS = 2 * simt.SLOTS, 2, 6

#: Rows in the middle that are looked at before all rows of a matrix with this many times as many.
#: Rows that differ all ask for cells of one table: the search of a level of multigrid took 2.4
#: milliseconds, of 19 for the eight levels of 1000^2 unknowns (H200).
SAMPLE, TIMES_SAMPLE = 1 << 10, 8


def row_patterns(
    executor: GpuExecutor, indptr: Array, indices: Array, most: int
) -> FoundRowPatterns:
    """Return the patterns of rows, if there are at most ``most``."""
    if int(indptr.size) - 1 >= TIMES_SAMPLE * SAMPLE:
        far = _reach_if_many(executor, indptr, indices, most)
        if far is not None:
            return FoundRowPatterns(far)
    table = executor.zeros((_CELLS + _COUNTS,), np.int64)
    made = _find_patterns(executor, indptr, indices, most, table)
    result = _patterns(executor.to_host(table[_CELLS:]), most, *made)
    assert result is not None
    return result


def _reach_if_many(executor: GpuExecutor, indptr: Array, indices: Array, most: int) -> int | None:
    """Return the largest offset if a sample of the rows has more than ``most`` patterns."""
    middle = (int(indptr.size) - 1 - SAMPLE) // 2
    table = executor.zeros((_CELLS + _COUNTS + 1,), np.int64)
    counts, reach = table[_CELLS:-1], table[-1:]
    _search_patterns(executor, indptr[middle : middle + SAMPLE + 1], indices, most, table)
    examine(executor, indptr, indices, reach.view(np.int32))
    found, far = executor.transfer(counts, reach).read()
    _, count, *_ = found.view(np.int32)
    return int(far.view(np.int32)[0]) if count > most else None


def lengths_and_patterns(
    executor: GpuExecutor, indptr: Array, indices: Array, most: int, longest: int, slices: int
) -> tuple[Numbers, FoundRowPatterns | None]:
    """Return the numbers of rows in order, and their patterns, with one wait for both.

    Parameters
    ----------
    longest, slices : int
        Patterns are None if a row is longer, or if there are more entries with padding: a lane
        processes a whole row, which would take long.
    """
    table = executor.zeros((_CELLS + _COUNTS + _LENGTHS,), np.int64)
    lengths = table[_CELLS + _COUNTS :]
    _measure(executor, indptr, None, lengths)
    made = _find_patterns(executor, indptr, indices, most, table, lengths, longest, slices)
    found = executor.to_host(table[_CELLS:])
    return _numbers(found[_COUNTS:]), _patterns(found[:_COUNTS], most, *made)


def _find_patterns(
    executor: GpuExecutor,
    indptr: Array,
    indices: Array,
    most: int,
    table: Array,
    lengths: Array | None = None,
    longest: int = 0,
    slices: int = 0,
) -> tuple[Array, Array]:
    """Launch a pass over the entries; return each row's pattern number, and example rows."""
    operands = (executor, indptr, indices, most, table, lengths, longest, slices)
    slot, codes, model = _search_patterns(*operands)
    m = int(indptr.size) - 1
    of_row = executor.allocate((m,), np.uint8)
    to_write = (m, most, table, slot, codes, of_row)
    _launch(executor, simt.write_patterns, m, indptr.dtype, *to_write, SLOTS=simt.SLOTS)
    return of_row, model


def _search_patterns(
    executor: GpuExecutor,
    indptr: Array,
    indices: Array,
    most: int,
    table: Array,
    lengths: Array | None = None,
    longest: int = 0,
    slices: int = 0,
) -> tuple[Array, Array, Array]:
    """Launch the search; return each row's slot, the numbers of slots, and example rows."""
    m, slots = int(indptr.size) - 1, simt.SLOTS
    slot = executor.allocate((2 * m,), np.uint8)
    codes, model = executor.allocate((slots,), np.uint8), executor.allocate((most,), np.int64)
    blocks = _resident(executor, m, simt.find_patterns)
    given: tuple[Any, ...] = (
        m, indptr, indices, most, table, slot, codes, model, lengths, longest, slices,
        executor.scratch(0)[1],
    )  # fmt: skip
    executor.launch_simt(simt.find_patterns, blocks, given, np.float32, indptr.dtype, SLOTS=slots)
    return slot, codes, model


def _patterns(
    counts: np.ndarray[Any, Any], most: int, of_row: Array, model: Array
) -> FoundRowPatterns | None:
    """Return the patterns from the numbers after the table; None if none were searched for."""
    far, count, differ, _ = (int(n) for n in counts.view(np.int32))
    if count == 0:
        return None
    if count > most or differ:
        return FoundRowPatterns(far)
    return FoundRowPatterns(far, of_row, model[:count])


def check_patterns(
    executor: GpuExecutor,
    indptr: Array,
    indices: Array,
    of_row: Array,
    model: Array,
    wrong: Array,
) -> None:
    """Count in ``wrong`` the rows that differ from their pattern's example row."""
    m = int(indptr.size) - 1
    operands = (m, indptr, indices, of_row, model, wrong)
    _launch(executor, simt.check_patterns, m, indptr.dtype, *operands)


def pattern_offsets(
    executor: GpuExecutor, indptr: Array, indices: Array, model: Array, width: int, none: int
) -> Array:
    """Return each pattern's offsets from the diagonal, in lines of ``width``.

    Parameters
    ----------
    model : array
        An example row for each pattern.
    none : int
        The number that follows the last offset of a pattern.
    """
    offsets = executor.allocate((int(model.size), width), np.int32)
    operands = (int(model.size), width, none, indptr, indices, model, offsets)
    _launch(executor, simt.write_offsets, int(offsets.size), indptr.dtype, *operands)
    return offsets


def column_counts(executor: GpuExecutor, indices: Array, columns: int) -> Array:
    """Return the number of entries per column, in 32 bits."""
    counts = executor.zeros((columns,), np.int32)
    if indices.size:
        entries = int(indices.size)
        _launch(executor, kernels.count_columns, entries, indices.dtype, entries, indices, counts)
    return counts


def row_blocks(
    executor: GpuExecutor, indptr: Array, most: int, most_rows: int
) -> tuple[Array, Array, bool]:
    """Return the first rows and entries of row blocks, and whether a row is cut."""
    dtype, m = indptr.dtype, int(indptr.size) - 1
    jump, next_jump = (executor.allocate((m + 1,), np.int64) for _ in range(2))
    begins = executor.allocate((m + 1,), np.uint8)
    operands: tuple[Any, ...] = (m, indptr, most, most_rows, jump, begins)
    _launch(executor, simt.end_row_blocks, m + 1, dtype, *operands)
    # Two adjacent row blocks together exceed the limit of entries or of rows.
    nnz = int(executor.to_host(indptr[-1:])[0])
    count = min(m, 2 * (nnz // most + m // most_rows + 1))
    for _ in range(count.bit_length()):
        operands = (m, jump, next_jump, begins)
        _launch(executor, simt.double_jumps, m + 1, dtype, *operands)
        jump, next_jump = next_jump, jump
    parts = executor.allocate((m,), np.int64)
    _launch(executor, simt.count_row_blocks, m, dtype, m, indptr, most, begins, parts)
    places = running_sum(executor, parts)
    size, cut = int(executor.to_host(places[-1:])[0]) + 1, executor.zeros((1,), np.int32)
    row, entry = (executor.allocate((size,), dtype) for _ in range(2))
    operands = (m, indptr, most, places, row, entry, cut)
    _launch(executor, simt.write_row_blocks, m + 1, dtype, *operands)
    return row, entry, bool(executor.to_host(cut)[0])
