"""What plans of many rows are made of, by kernels of our own.

CuPy compiles each of its functions when a machine first meets it, some 0.09 seconds each: a first
product of two million rows met 25 to 31 of them (H200). The functions here return what those of
:mod:`.packed`, :mod:`.row_blocks` and :mod:`wollemi.core.statistics` return for few rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.executor import Array
from ....core.statistics import RowStatistics, in_numbers
from ...simt import kernels
from ...simt import plan_kernels as simt
from .. import launch
from ..base import GpuExecutor

#: Slices within whose rows are sorted: 1024 rows keep what is near in x near.
WINDOW = 32
#: Stands for the padding of lanes that nobody asked about.
UNKNOWN = 9.9
#: Parts that a running sum is made of: a work-item adds up one, another all of these.
PARTS = 1024


def _launch(
    executor: GpuExecutor, kernel: Any, items: int, index: Any, *given: Any, **constants: int
) -> None:
    """Launch a kernel that knows indices and no values on so many work-items."""
    blocks = launch.row_blocks(items, kernel.block)
    executor.launch_simt(kernel, blocks, given, np.float32, index, **constants)


class Numbers(NamedTuple):
    """The lengths of lanes: the longest, how many are filled, squares, entries of all slices."""

    longest: int
    filled: int
    squares: int
    slices: int


def measure(executor: GpuExecutor, indptr: Array, order: Array | None = None) -> Numbers:
    """Return the numbers of rows as they come, or in an order."""
    m = int(indptr.size) - 1
    resident = executor.device.multiprocessors * launch.RESIDENT
    blocks = min(launch.row_blocks(m), resident)
    numbers = executor.allocate((5,), np.int64)
    place, counter = executor.scratch(blocks * 5 * 8)
    given = (m, indptr, order, numbers, place, counter)
    executor.launch_simt(simt.measure_rows, blocks, given, np.float32, indptr.dtype)
    longest, filled, low, high, slices = (int(n) for n in executor.to_host(numbers))
    return Numbers(longest, filled, low + (high << 24), slices)


def statistics(executor: GpuExecutor, indptr: Array, columns: int) -> RowStatistics:
    """Return the statistics of rows; see :func:`~wollemi.core.statistics.lengths_in_numbers`."""
    m = int(indptr.size) - 1
    first, last = (int(executor.to_host(end)[0]) for end in (indptr[:1], indptr[-1:]))
    found = measure(executor, indptr)
    return in_numbers(m, columns, last - first, found.squares, found.longest, found.filled)


def window_order(executor: GpuExecutor, indptr: Array, warp: int) -> Array:
    """Return rows by falling length within windows of slices; those of one length as they come."""
    m, window = int(indptr.size) - 1, warp * WINDOW
    order = executor.allocate((m,), np.int32)
    executor.launch_simt(
        simt.order_windows,
        launch.row_blocks(m, window),
        (m, indptr, order),
        np.float32,
        indptr.dtype,
        WINDOW=window,
    )
    return order


def paddings(executor: GpuExecutor, indptr: Array, warp: int, enough: float) -> tuple[float, float]:
    """Return packed entries per entry, of rows as they come and, if that is too much, sorted."""
    first, last = (int(executor.to_host(end)[0]) for end in (indptr[:1], indptr[-1:]))
    entries = max(last - first, 1)
    as_they_come = measure(executor, indptr).slices / entries
    if as_they_come <= enough:
        return as_they_come, UNKNOWN
    order = window_order(executor, indptr, warp)
    return as_they_come, measure(executor, indptr, order).slices / entries


def lanes_of_rows(
    executor: GpuExecutor, indptr: Array, warp: int, in_order: bool
) -> tuple[Array, Array, Array | None]:
    """Return the first entries and lengths of lanes that are rows, and which rows they are."""
    m = int(indptr.size) - 1
    order = None if in_order else window_order(executor, indptr, warp)
    start, length = executor.allocate((m,), np.int64), executor.allocate((m,), np.int32)
    _launch(executor, simt.lay_lanes, m, indptr.dtype, m, indptr, order, start, length)
    return start, length, order


def running_sum(executor: GpuExecutor, numbers: Array) -> Array:
    """Return the sums of all 64-bit integers before each, and of all."""
    m = int(numbers.size)
    parts = max(1, min(PARTS, m))
    sums, totals = (executor.allocate((size,), np.int64) for size in (m + 1, parts))
    _launch(executor, kernels.scan_totals, parts, np.int64, m, parts, numbers, totals)
    _launch(executor, kernels.scan_join, 1, np.int64, parts, totals)
    _launch(executor, kernels.scan_fill, parts, np.int64, m, parts, numbers, totals, sums)
    return sums


def slice_pointers(executor: GpuExecutor, length: Array) -> Array:
    """Return where the slices of lanes of these lengths begin, and where the last one ends."""
    lanes = int(length.size)
    widths = executor.allocate((-(-lanes // executor.device.warp),), np.int64)
    _launch(executor, simt.measure_slices, lanes, np.int64, lanes, length, widths)
    return running_sum(executor, widths)


def equal_slices(executor: GpuExecutor, slices: int, width: int) -> Array:
    """Return where slices of one width begin, and where the last one ends."""
    pointers = executor.allocate((slices + 1,), np.int64)
    _launch(executor, simt.equal_slices, slices + 1, np.int64, slices, width, pointers)
    return pointers


def alike(executor: GpuExecutor, hashes: Array, most: int) -> tuple[Array, Array] | None:
    """Return which rows have one hash, and a model of each; None if more than ``most`` differ."""
    m, index = int(hashes.size), np.int32
    table, found = executor.zeros((simt.SLOTS,), np.int64), executor.zeros((1,), np.int32)
    model = executor.from_host(np.full(simt.SLOTS, m, np.int64))
    given: tuple[Any, ...] = (m, hashes, most, table, model, found)
    _launch(executor, simt.collect_patterns, m, index, *given, SLOTS=simt.SLOTS)
    count = int(executor.to_host(found)[0])
    if count > most:
        return None
    codes, models = executor.zeros((simt.SLOTS,), np.uint8), executor.allocate((count,), np.int64)
    given = (table, model, codes, models)
    _launch(executor, simt.number_patterns, 1, index, *given, SLOTS=simt.SLOTS)
    pattern = executor.allocate((m,), np.uint8)
    given = (m, hashes, None, table, codes, pattern)
    _launch(executor, simt.write_patterns, m, index, *given, SLOTS=simt.SLOTS)
    return pattern, models


def column_counts(executor: GpuExecutor, indices: Array, columns: int) -> Array:
    """Return how many entries each column has, in 32 bits."""
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
    given: tuple[Any, ...] = (m, indptr, most, most_rows, jump, begins)
    _launch(executor, simt.end_row_blocks, m + 1, dtype, *given)
    # Two neighbours have more than most entries or rows together.
    nnz = int(executor.to_host(indptr[-1:])[0])
    count = min(m, 2 * (nnz // most + m // most_rows + 1))
    for _ in range(count.bit_length()):
        given = (m, jump, next_jump, begins)
        _launch(executor, simt.double_jumps, m + 1, dtype, *given)
        jump, next_jump = next_jump, jump
    parts = executor.allocate((m,), np.int64)
    _launch(executor, simt.count_row_blocks, m, dtype, m, indptr, most, begins, parts)
    places = running_sum(executor, parts)
    size, cut = int(executor.to_host(places[-1:])[0]) + 1, executor.zeros((1,), np.int32)
    row, entry = (executor.allocate((size,), dtype) for _ in range(2))
    given = (m, indptr, most, places, row, entry, cut)
    _launch(executor, simt.write_row_blocks, m + 1, dtype, *given)
    return row, entry, bool(executor.to_host(cut)[0])
