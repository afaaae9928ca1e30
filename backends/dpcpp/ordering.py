"""Sort entries on the device with a stable radix sort, and derive arrays from the order."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Any

from ...core.operations import scan
from ..simt import kernels as simt
from ..unified.wrappers import SimtKernel
from . import templates
from .table import kernel

if TYPE_CHECKING:
    from .array import UsmArray
    from .executor import DpcppExecutor

#: Upper bound of bits per digit: each part counts all values of a digit.
DIGIT_BITS = 8


def parts_of(executor: DpcppExecutor, count: int) -> int:
    """Return the number of parts of ``count`` elements: on a GPU, as many as a part is long."""
    blocks, _ = executor.grid(count)
    return blocks if executor.one_item_groups else max(1, isqrt(count))


@kernel(scan.pointers)
def pointers(executor: DpcppExecutor, lengths: UsmArray, indptr: UsmArray) -> None:
    """Sum each part, scan the sums of the parts, then scan each part."""
    m, parts, index = lengths.size, parts_of(executor, lengths.size), lengths.dtype
    blocks, block = executor.grid(m)
    totals = executor.allocate((parts,), index)

    def launch(step: SimtKernel, groups: int, arguments: tuple[object, ...]) -> None:
        executor.launch(step, templates.SCAN, (groups, block), arguments, "f4", index)

    launch(simt.scan_totals, blocks, (m, parts, lengths, totals))
    launch(simt.scan_join, 1, (parts, totals))
    launch(simt.scan_fill, blocks, (m, parts, lengths, totals, indptr))


def by_index(
    executor: DpcppExecutor, step: SimtKernel, work: int, arguments: tuple[Any, ...]
) -> None:
    """Launch a kernel that moves no values; its last argument determines the index dtype."""
    index = arguments[-1].dtype
    executor.launch(step, templates.ORDERING, executor.grid(work), arguments, "f4", index)


def by_value(
    executor: DpcppExecutor, step: SimtKernel, work: int, arguments: tuple[Any, ...]
) -> None:
    """Launch a kernel that has the new indices and values as its last two arguments."""
    *_, indices, values = arguments
    grid = executor.grid(work)
    executor.launch(step, templates.ENTRIES, grid, arguments, values.dtype, indices.dtype)


def ordered(
    executor: DpcppExecutor, keys: UsmArray, bound: int, order: UsmArray | None = None
) -> UsmArray:
    """Return the entries sorted by key; the sort is stable.

    Parameters
    ----------
    keys : array of I, shape (n,)
        The keys of the entries, from 0 to ``bound - 1``.
    order : array of I, shape (n,), optional
        The current order of the entries; by default, 0 to n - 1.
    """
    n = keys.size
    parts = parts_of(executor, n)
    bits = max(int(bound - 1).bit_length(), 1)
    passes = -(-bits // DIGIT_BITS)
    width = -(-bits // passes)
    for shift in range(0, bits, width):
        sorting = (n, parts, shift, 1 << width, keys, order)
        order = moved(executor, sorting, places_of(executor, sorting))
    assert order is not None
    return order


def places_of(executor: DpcppExecutor, sorting: tuple[Any, ...]) -> UsmArray:
    """Return where each part stores its first entry of each digit, digit by digit."""
    n, parts, _, digits, keys, _ = sorting
    counts = executor.allocate((digits * parts,), keys.dtype)
    places = executor.allocate((digits * parts + 1,), keys.dtype)
    by_index(executor, simt.radix_count, n, (*sorting, counts))
    executor.run(scan.pointers, counts, places)
    return places


def moved(executor: DpcppExecutor, sorting: tuple[Any, ...], places: UsmArray) -> UsmArray:
    """Return the entries sorted by one digit; ``places`` is overwritten."""
    n, keys = sorting[0], sorting[4]
    order = executor.allocate((n,), keys.dtype)
    by_index(executor, simt.radix_move, n, (*sorting, places, order))
    return order


def bucketed(executor: DpcppExecutor, keys: UsmArray, bound: int) -> tuple[UsmArray, UsmArray]:
    """Return the entries sorted by key, and the position of each key's first entry."""
    order = ordered(executor, keys, bound)
    return order, bounds(executor, keys, order, bound)


def bounds(executor: DpcppExecutor, keys: UsmArray, order: UsmArray, buckets: int) -> UsmArray:
    """Return the first entry of each key in the sorted order, and the end of the last key."""
    indptr = executor.allocate((buckets + 1,), keys.dtype)
    arguments = (keys.size, buckets, keys, order, indptr)
    by_index(executor, simt.ordered_bounds, buckets + 1, arguments)
    return indptr


def rows_of(executor: DpcppExecutor, A: Any) -> UsmArray:
    """Return the row of each entry of compressed rows."""
    row = executor.allocate((A.indices.size,), A.indices.dtype)
    by_index(executor, simt.entry_rows, A.shape[0], (A.shape[0], A.indptr, row))
    return row


def reordered(
    executor: DpcppExecutor, order: UsmArray, indices: UsmArray, data: UsmArray
) -> tuple[UsmArray, UsmArray]:
    """Return indices and values in another order."""
    n = order.size
    result = executor.allocate((n,), indices.dtype), executor.allocate((n,), data.dtype)
    by_value(executor, simt.reorder_entries, n, (n, order, indices, data, *result))
    return result
