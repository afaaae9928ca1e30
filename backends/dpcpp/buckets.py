"""Sort coordinates into rows, and rows into columns, on CPU devices by counting.

A work-group is one work-item with a part of the entries and one counter per bucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..unified.wrappers import SimtKernel
from . import templates
from .ordering import parts_of

if TYPE_CHECKING:
    from .array import UsmArray
    from .executor import DpcppExecutor

#: Upper bound of counters per entry; more counters cost more than parallel parts save.
COUNTERS_PER_ENTRY = 4


def rows_of_coordinates(executor: DpcppExecutor, A: Any) -> tuple[UsmArray, ...]:
    """Return indptr, indices and data of coordinates sorted by row; each row keeps its order."""
    n, m = A.row.size, A.shape[0]
    parts, counts, indptr = _counted(executor, A.row, m, A.data)
    new = executor.allocate((n,), A.row.dtype), executor.allocate((n,), A.data.dtype)
    arguments = (n, m, A.row, A.col, A.data, counts, *new)
    _launch(executor, templates.move_coordinates_cpu, parts, A.data, A.row, arguments)
    return indptr, *new


def columns_of_rows(executor: DpcppExecutor, A: Any) -> tuple[UsmArray, ...]:
    """Return indptr, indices and data of the transpose, and the old position of each entry."""
    n, (m, columns), index = A.indices.size, A.shape, A.indices.dtype
    parts, counts, indptr = _counted(executor, A.indices, columns, A.data)
    indices, order = (executor.allocate((n,), index) for _ in range(2))
    data = executor.allocate((n,), A.data.dtype)
    arguments = (n, m, columns, A.indptr, A.indices, A.data, counts, indices, data, order)
    _launch(executor, templates.move_to_columns_cpu, parts, A.data, A.indices, arguments)
    return indptr, indices, data, order


def _counted(
    executor: DpcppExecutor, keys: UsmArray, buckets: int, data: UsmArray
) -> tuple[int, UsmArray, UsmArray]:
    """Return the number of parts, each part's next position per bucket, and bucket pointers."""
    n = keys.size
    parts = min(parts_of(executor, n), executor.facts.units)
    if buckets * parts > COUNTERS_PER_ENTRY * n:
        parts = 1
    counts = executor.allocate((buckets * parts,), keys.dtype)
    indptr = executor.allocate((buckets + 1,), keys.dtype)
    _launch(executor, templates.count_keys_cpu, parts, data, keys, (n, buckets, keys, counts))
    _launch(executor, templates.find_buckets_cpu, 1, data, keys, (buckets, parts, counts, indptr))
    return parts, counts, indptr


def _launch(
    executor: DpcppExecutor,
    step: SimtKernel,
    parts: int,
    data: UsmArray,
    keys: UsmArray,
    arguments: tuple[Any, ...],
) -> None:
    executor.launch(step, templates.CPU_BUCKETS, (parts, 1), arguments, data.dtype, keys.dtype)
