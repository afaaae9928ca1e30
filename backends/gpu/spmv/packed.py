"""Packed copies of CSR matrices: slices of rows of similar length, stored lane by lane.

A lane of a slice is a row or, for long rows, a piece of one. Sorts and prefix sums make the arrays,
on the device for many rows; the plan that contains them belongs to the matrix.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core.algorithm import Unsuited
from ...simt import kernels as simt
from .. import launch
from ..arguments import address, flatten
from ..base import GpuExecutor
from . import on_device
from .selection import MOST_PATTERNS, UNKNOWN

if TYPE_CHECKING:
    from types import ModuleType

    from ....core.executor import Array
    from ....core.formats.csr import Csr

#: Entries per piece of a long row. On an R-MAT graph, 64 was 3 to 4 % faster than 32 and 128
#: (H200).
PIECE = 64
#: Use one width for all slices if padding increases the cost of slices by at most this factor.
ONE_WIDTH = 1.03
#: If a row has more pieces, a block sums them instead of a wave.
MANY_PIECES = 256
#: Pieces keep the order of rows within windows if the padding is at most this factor; 1.25 moved a
#: quarter more data for a random power-law matrix (424 microseconds, cuSPARSE 382; H200).
KEEP_ORDER = 1.08


ABSOLUTE, NEAR, PATTERN = range(3)
NO_OFFSET = -(2**31)


class Packed:
    """A packed copy, and the arrays that its product needs.

    Attributes
    ----------
    code : int
        The encoding of columns: ``ABSOLUTE``, ``NEAR`` or ``PATTERN``.
    lanes : int
        Number of lanes: rows and pieces of rows.
    width : int
        The width of all slices, if the kernel is compiled for it; 0 if widths differ or are large.
    slice_ptr, codes, values, target, offsets : array
        The arguments of the kernel ``sell_packed``.
    start, length : array or None
        The entries of each lane in the matrix; None if lane i is row i.
    cut_rows, cut_first, cut_last : array or None
        The cut rows and their segments; rows with many segments come first.
    empty_rows : array or None
        The rows without entries, if they are not lanes.
    gathered : array or None
        The order in which to sort x.
    """

    width = 0
    start: Array | None = None
    length: Array | None = None
    target: Array | None = None
    offsets: Array | None = None
    pattern_width = 0
    column: Array | None = None
    cut_rows: Array | None = None
    cut_first: Array | None = None
    cut_last: Array | None = None
    many_pieces = 0
    pieces = 0
    empty_rows: Array | None = None
    gathered: Array | None = None
    cached = 0
    #: The addresses of the last new values, and the launch that copied them.
    _refill: tuple[Any, Any, int, list[Any]] | None = None

    def __init__(self, executor: GpuExecutor, matrix: Csr, code: int) -> None:
        self.executor = executor
        self.code = code
        self.dtype = matrix.data.dtype

    def pack(self, matrix: Csr, lanes: int, numbers: on_device.Numbers | None = None) -> Packed:
        """Lay out the slices of lanes, and fill them.

        Parameters
        ----------
        matrix : Csr
        lanes : int
            The number of lanes.
        numbers : Numbers, optional
            The statistics of the lanes' lengths, if they are known.

        Raises
        ------
        Unsuited
            If there are no lanes.
        """
        if not lanes:
            raise Unsuited("it has no entries to lay out")
        executor, xp, device = self.executor, self.executor.xp, self.executor.device
        self.lanes = lanes
        if numbers is None:
            laid_out = executor.planned(
                self.lanes,
                layout,
                self.length,
                make_on_device=layout_here,
                warp=device.warp,
                known_width=device.known_width,
            )
        else:
            laid_out = layout_of(executor, lanes, self.length, numbers)
        self.slice_ptr, self.width = laid_out.pointers, laid_out.width
        self.values = xp.empty(laid_out.total, self.dtype)
        if self.code != PATTERN:
            self.codes = xp.empty(laid_out.total * (4 if self.code == ABSOLUTE else 2), np.uint8)
        self._fill(matrix, self.code)
        return self

    def _tell_columns(
        self, matrix: Csr, patterns: on_device.FoundRowPatterns, longest: int
    ) -> None:
        """Assign a pattern to each lane, and make the patterns' table of offsets."""
        if patterns.model is None:
            raise Unsuited(f"rows have more than {MOST_PATTERNS} patterns of columns")
        # An odd stride: lanes at the same step, each in its own line, then read from different
        # banks. For blocks of 64 x 64 and 32 x 32 the product took 80 microseconds, with 125 x 125
        # it took 37.
        self.pattern_width = longest | 1
        self.offsets = on_device.pattern_offsets(
            self.executor,
            matrix.indptr,
            matrix.indices,
            patterns.model,
            self.pattern_width,
            NO_OFFSET,
        )
        self.codes = patterns.of_row
        if self.target is not None:
            self.codes = self.executor.planned(
                int(self.target.size), taken, self.codes, self.target
            )

    def update_values(self, matrix: Csr) -> None:
        """Copy the matrix's new values to their positions; repeats reuse the launch."""
        executor = self.executor
        read = (matrix.data, matrix.indices, matrix.indptr, self.values, self.start)
        key = (matrix.dtype, *map(address, read))
        if self._refill is None or self._refill[0] != key:
            function, blocks, values = self._filling(matrix, PATTERN)
            self._refill = (key, function, blocks, values)
        _, function, blocks, values = self._refill
        executor.launch(function, blocks, values, simt.sell_fill.block)

    def _fill(self, matrix: Csr, code: int) -> None:
        function, blocks, values = self._filling(matrix, code)
        self.executor.launch(function, blocks, values, simt.sell_fill.block)

    def _filling(self, matrix: Csr, code: int) -> tuple[Any, int, list[Any]]:
        """Return the kernel that fills the slices, its number of blocks and its arguments."""
        codes = self.codes if code != PATTERN else None
        arguments = (
            self.lanes, self.slice_ptr, matrix.indptr, self.start, self.length, self.target,
            self.column, matrix.indices, matrix.data, codes, self.values,
        )  # fmt: skip
        function = self.executor.simt_function(
            simt.sell_fill, matrix.dtype, matrix.indices.dtype, self.dtype, {"CODE": code}
        )
        flat = flatten(simt.sell_fill.parameters, arguments, matrix.dtype)
        return function, launch.row_blocks(self.lanes), flat

    def without_sources(self) -> Packed:
        """Return the same copy without the positions for new values; the arrays are shared."""
        result = copy(self)
        result.start = result.length = result.column = None
        return result

    @property
    def nbytes(self) -> int:
        """Size of the copy in bytes."""
        arrays = (self.values, self.codes, self.slice_ptr, self.start, self.length, self.target)
        return sum(int(a.nbytes) for a in arrays if a is not None)


def slice_pointers(xp: ModuleType, length: Array, warp: int) -> Any:
    """Return the beginning of each slice of lanes with these lengths, and the end of the last."""
    slices = -(-int(length.size) // warp)
    padded = xp.zeros(slices * warp, np.int64)
    padded[: length.size] = length
    pointers = xp.zeros(slices + 1, np.int64)
    xp.cumsum(padded.reshape(slices, warp).max(axis=1) * warp, out=pointers[1:])
    return pointers


class SliceLayout(NamedTuple):
    """The beginnings of slices, their total size, and their common width or 0."""

    pointers: Array
    total: int
    width: int


def layout(xp: ModuleType, length: Array, warp: int, known_width: int) -> SliceLayout:
    """Return the layout of the slices of lanes.

    Parameters
    ----------
    length : array
        The lengths of the lanes.
    known_width : int
        Largest width for which kernels are compiled.
    """
    pointers = slice_pointers(xp, length, warp)
    width = one_width(
        int(pointers[-1]), int(pointers.size) - 1, int(length.max()), warp, known_width
    )
    if width:
        pointers = xp.arange(pointers.size, dtype=np.int64) * (width * warp)
    return SliceLayout(pointers, int(pointers[-1]), width)


def layout_here(executor: GpuExecutor, length: Array, warp: int, known_width: int) -> SliceLayout:
    """Return the same, computed by wollemi's kernels."""
    pointers = on_device.slice_pointers(executor, length)
    slices, total = int(pointers.size) - 1, int(pointers[-1])
    width = one_width(total, slices, int(length.max()), warp, known_width)
    return _equal(executor, slices, width) if width else SliceLayout(pointers, total, 0)


def width_of(executor: GpuExecutor, lanes: int, numbers: on_device.Numbers) -> int:
    """Return the common width of all slices, or 0."""
    warp, known_width = executor.device.warp, executor.device.known_width
    return one_width(numbers.slices, -(-lanes // warp), numbers.longest, warp, known_width)


def layout_of(
    executor: GpuExecutor, lanes: int, length: Array | None, numbers: on_device.Numbers
) -> SliceLayout:
    """Return the same for lanes with known numbers; ``length`` is used if widths differ."""
    if width := width_of(executor, lanes, numbers):
        return _equal(executor, -(-lanes // executor.device.warp), width)
    return SliceLayout(on_device.slice_pointers(executor, length), numbers.slices, 0)


def _equal(executor: GpuExecutor, slices: int, width: int) -> SliceLayout:
    entries = width * executor.device.warp
    pointers = on_device.equal_slices(executor, slices, entries)
    return SliceLayout(pointers, slices * entries, width)


def one_width(total: int, slices: int, longest: int, warp: int, known_width: int) -> int:
    """Return a common width of all slices, or 0 if it is unsupported or needs too much padding."""
    if longest > known_width or longest * warp * slices > ONE_WIDTH * total:
        return 0
    return longest


def window_order(xp: ModuleType, length: Array, warp: int) -> Any:
    """Return rows sorted by decreasing length within windows; equal lengths keep their order."""
    longest = int(length.max()) if length.size else 0
    window = xp.arange(length.size, dtype=np.int64) // (warp * on_device.WINDOW)
    return xp.argsort(window * (longest + 1) + (longest - length), kind="stable")


def padding(xp: ModuleType, length: Array, warp: int) -> float:
    """Return packed entries (including padding) per entry, for lanes of these lengths."""
    nnz = int(length.sum())
    return float(int(slice_pointers(xp, length, warp)[-1]) / max(nnz, 1))


def paddings(xp: ModuleType, indptr: Array, warp: int, enough: float) -> tuple[float, float]:
    """Return the padding of rows in order and, if it exceeds ``enough``, of sorted rows."""
    length = xp.diff(indptr.astype(np.int64))
    as_they_come = padding(xp, length, warp)
    if as_they_come <= enough:
        return as_they_come, UNKNOWN
    return as_they_come, padding(xp, length[window_order(xp, length, warp)], warp)


def lanes_of_rows(xp: ModuleType, indptr: Array, warp: int, in_order: bool) -> tuple[Any, Any, Any]:
    """Return the first entries and lengths of lanes that are rows, and the rows' indices.

    The indices are None if the rows are in order; otherwise, rows are sorted within windows.
    """
    indptr = indptr.astype(np.int64)
    length = xp.diff(indptr)
    if in_order:
        return indptr[:-1], length.astype(np.int32), None
    order = window_order(xp, length, warp)
    return indptr[:-1][order], length[order].astype(np.int32), order.astype(np.int32)


def pack_rows(
    executor: GpuExecutor,
    matrix: Csr,
    code: int,
    *,
    in_order: bool,
    lengths: on_device.RowLengths | None = None,
    patterns: on_device.FoundRowPatterns | None = None,
) -> Packed:
    """Return a packed copy with rows as lanes, sorted within windows unless ``in_order``.

    Parameters
    ----------
    lengths : RowLengths, optional
        The lengths of the rows, if they were measured.
    patterns : FoundRowPatterns, optional
        At most 256 patterns, if they were searched for.
    """
    made, m = Packed(executor, matrix, code), matrix.shape[0]
    numbers = None
    if lengths is None:
        made.start, made.length, made.target = executor.planned(
            m, lanes_of_rows, matrix.indptr, warp=executor.device.warp, in_order=in_order
        )
        longest = executor.planned(m, largest, made.length)
    else:
        numbers = lengths.as_they_come if in_order else lengths.in_windows
        made.target, longest = None if in_order else lengths.order, numbers.longest
        if made.target is not None or not width_of(executor, m, numbers):
            made.start, made.length = on_device.lanes_of_rows(executor, matrix.indptr, made.target)
    if code == PATTERN:
        given = patterns or row_patterns(executor, matrix.indptr, matrix.indices, MOST_PATTERNS)
        made._tell_columns(matrix, given, longest)
    return made.pack(matrix, m, numbers)


def pack_pieces(executor: GpuExecutor, matrix: Csr, cached: int = 0) -> Packed:
    """Return a packed copy with segments of at most ``PIECE`` entries as lanes.

    Parameters
    ----------
    cached : int
        Number of columns, the ones with the most entries, to keep in shared memory; columns are
        then numbered by decreasing count.
    """
    xp, warp = executor.xp, executor.device.warp
    made = Packed(executor, matrix, ABSOLUTE)
    indptr = matrix.indptr.astype(np.int64)
    length = xp.diff(indptr)
    of_row = (length + PIECE - 1) // PIECE
    row = _repeated(xp, of_row)
    first = xp.cumsum(of_row) - of_row
    number = xp.arange(row.size, dtype=np.int64) - first[row]
    start = indptr[row] + number * PIECE
    size = xp.minimum(indptr[row + 1] - start, PIECE)
    cut = of_row[row] > 1
    target = row.astype(np.int64)
    # Integers, because CuPy takes five seconds to compile the sum of booleans at its first use.
    made.pieces = int(cut.astype(np.int64).sum())
    if made.pieces:
        piece = xp.cumsum(cut) - 1
        target[cut] = -1 - piece[cut]
        rows = xp.flatnonzero(of_row > 1)
        pieces = of_row[rows]
        last = xp.cumsum(pieces)
        by_count_of_pieces = xp.argsort(-(pieces > MANY_PIECES).astype(np.int32), kind="stable")
        made.many_pieces = int((pieces > MANY_PIECES).astype(np.int64).sum())
        made.cut_rows = rows[by_count_of_pieces].astype(np.int32)
        made.cut_first = (last - pieces)[by_count_of_pieces].astype(np.int32)
        made.cut_last = last[by_count_of_pieces].astype(np.int32)
    empty = xp.flatnonzero(length == 0)
    made.empty_rows = empty.astype(np.int32) if empty.size else None
    # Full segments first: blocks take slices in turn, so a long slice should not be last.
    order = xp.argsort(-size * 2 - cut, kind="stable") if cached else _order(xp, size, cut, warp)
    made.start, made.length = start[order], size[order].astype(np.int32)
    made.target = target[order].astype(np.int32)
    if cached:
        made.gathered, made.column = by_count(executor, matrix)
        made.cached = cached
    return made.pack(matrix, int(made.length.size))


def _order(xp: ModuleType, size: Array, cut: Array, warp: int) -> Array:
    """Return an order of pieces: cut rows first, then rows within windows, or all by size."""
    pieces, rows = xp.flatnonzero(cut), xp.flatnonzero(~cut)
    near = xp.concatenate([pieces, rows[window_order(xp, size[rows], warp)]])
    if padding(xp, size[near], warp) <= KEEP_ORDER:
        return near
    return xp.argsort(-size, kind="stable")


def _repeated(xp: ModuleType, counts: Array) -> Array:
    """Return each index repeated ``counts`` times."""
    ends = xp.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    return xp.searchsorted(ends, xp.arange(total, dtype=ends.dtype), side="right")


def by_count(executor: GpuExecutor, matrix: Csr) -> tuple[Array, Array]:
    """Return the columns sorted by decreasing number of entries, and the rank of each column."""
    xp, count = executor.xp, on_device.column_counts(executor, matrix.indices, matrix.shape[1])
    order = xp.argsort(-count, kind="stable").astype(np.int32)
    place = xp.empty_like(order)
    place[order] = xp.arange(order.size, dtype=np.int32)
    return order, place


def shared_share(executor: GpuExecutor, matrix: Csr, cached: int) -> float:
    """Return the fraction of entries in the ``cached`` columns with the most entries."""
    xp, count = executor.xp, on_device.column_counts(executor, matrix.indices, matrix.shape[1])
    if count.size > cached:
        count = xp.partition(count, count.size - cached)[-cached:]
    return float(int(count.astype(np.int64).sum()) / max(matrix.nnz, 1))


def largest(xp: ModuleType, numbers: Array) -> int:
    """Return the largest of some nonnegative numbers, 0 if there are none."""
    return int(numbers.max()) if numbers.size else 0


def row_patterns(
    executor: GpuExecutor, indptr: Array, indices: Array, most: int
) -> on_device.FoundRowPatterns:
    """Return the largest offset of rows, and their patterns if there are at most ``most``."""
    m = int(indptr.size) - 1
    numbers = executor.zeros((3,), np.int32)
    hashes = on_device.examine(executor, indptr, indices, numbers[:1])
    found: tuple[Any, Any] | None = executor.planned(m, alike, hashes, most=most)
    if found is not None:
        on_device.check_patterns(executor, indptr, indices, *found, numbers[2:])
    reach, _, differ = (int(n) for n in executor.to_host(numbers))
    if found is None or differ:
        return on_device.FoundRowPatterns(reach)
    return on_device.FoundRowPatterns(reach, *found)


def alike(xp: ModuleType, hashes: Array, most: int) -> tuple[Array, Array] | None:
    """Return each row's group by hash, and an example row per group; None if too many."""
    # Check a sample first: sorting all hashes takes most of the time of making a plan.
    if int(xp.unique(hashes[:: max(1, hashes.size // 65536)]).size) > most:
        return None
    distinct, model, pattern = xp.unique(hashes, return_index=True, return_inverse=True)
    if int(distinct.size) > most:
        return None
    return pattern.reshape(-1).astype(np.uint8), model.astype(np.int64)


def taken(xp: ModuleType, numbers: Array, places: Array) -> Array:
    """Return the numbers at the given positions."""
    return numbers[places]
