"""Orders of entries on the device: a stable sort by digits, and arrays computed from an order."""

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

#: Bits of a digit at most: each part counts all digits.
DIGIT_BITS = 8


def parts_of(executor: DpcppExecutor, count: int) -> int:
    """Return how many parts work-items have of something: on a GPU as many as a part is long."""
    blocks, _ = executor.grid(count)
    return blocks if executor.one_item_groups else max(1, isqrt(count))


@kernel(scan.pointers)
def pointers(executor: DpcppExecutor, lengths: UsmArray, indptr: UsmArray) -> None:
    """Add up parts, then the sums before each part, then each part again."""
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
    """Launch a kernel that moves no values; the last argument has the dtype of indices."""
    index = arguments[-1].dtype
    executor.launch(step, templates.ORDERING, executor.grid(work), arguments, "f4", index)


def by_value(
    executor: DpcppExecutor, step: SimtKernel, work: int, arguments: tuple[Any, ...]
) -> None:
    """Launch a kernel with new indices and values as its last two arguments."""
    *_, indices, values = arguments
    grid = executor.grid(work)
    executor.launch(step, templates.ENTRIES, grid, arguments, values.dtype, indices.dtype)


def ordered(
    executor: DpcppExecutor, keys: UsmArray, bound: int, order: UsmArray | None = None
) -> UsmArray:
    """Return entries in the order of their keys; equal keys keep the order that they had.

    Parameters
    ----------
    keys : array of I, shape (n,)
        Of the entries, from 0 to below ``bound``.
    order : array of I, shape (n,), optional
        The order that they have; their own by default.
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
    """Return where each part puts its first entry of each digit, digit by digit."""
    n, parts, _, digits, keys, _ = sorting
    counts = executor.allocate((digits * parts,), keys.dtype)
    places = executor.allocate((digits * parts + 1,), keys.dtype)
    by_index(executor, simt.radix_count, n, (*sorting, counts))
    executor.run(scan.pointers, counts, places)
    return places


def moved(executor: DpcppExecutor, sorting: tuple[Any, ...], places: UsmArray) -> UsmArray:
    """Return the entries in the order of a digit; ``places`` is overwritten."""
    n, keys = sorting[0], sorting[4]
    order = executor.allocate((n,), keys.dtype)
    by_index(executor, simt.radix_move, n, (*sorting, places, order))
    return order


def bucketed(executor: DpcppExecutor, keys: UsmArray, bound: int) -> tuple[UsmArray, UsmArray]:
    """Return entries in the order of their keys, and the first entry of each key."""
    order = ordered(executor, keys, bound)
    return order, bounds(executor, keys, order, bound)


def bounds(executor: DpcppExecutor, keys: UsmArray, order: UsmArray, buckets: int) -> UsmArray:
    """Return where the entries of each key begin, in the order of keys, and where the last end."""
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
    made = executor.allocate((n,), indices.dtype), executor.allocate((n,), data.dtype)
    by_value(executor, simt.reorder_entries, n, (n, order, indices, data, *made))
    return made
