"""Sparse times dense: the kernels, and the 2 x 2 space of Huang et al. (2021, dgSPARSE).

Its two axes are the unit by which work is split (rows, ``rb``, or entries, ``eb``) and the way in
which a row is summed (sequentially, ``sr``, or in parallel with a reduction, ``pr``):

========= ============================================================== =======================
name      work of a wave                                                  text
========= ============================================================== =======================
``rb-sr`` each group of lanes has a row of its own                       ``spmm.hpp``, ROWS = 1
``rb-pr`` groups of few lanes share a row, and add up at its end         ``spmm.hpp``, ROWS = 0
``eb-sr`` each group of lanes has a chunk of entries                     ``spmm_nonzero_split.hpp``
``eb-pr`` a wave has one, and adds up its segments by a scan             ``spmm_nonzero_split.hpp``
========= ============================================================== =======================

``rb-pr-scalar`` and ``eb-pr-scalar`` are the same without vector loads of ``B``, for ablation
studies.

``row-split`` is ``rb-pr`` with one lane per vector of a row of ``B``, so that a wave has a wide row
and needs no reduction; ``row-segments`` is the same for segments of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ....core.algorithm import Facts
from ....core.calls import SpmmCall
from ....core.executor import Array
from ....core.store import Key
from ...unified.wrappers import SimtKernel
from . import declarations as ml
from .algorithm import RowAlgorithm
from .choice import Pieces, team_of

if TYPE_CHECKING:
    from types import ModuleType

    from ....core.formats.csr import Csr
    from .adapter import Adapter

csr_spmm_nonzero_split = SimtKernel(
    "csr_spmm_nonzero_split",
    "simt/spmm_nonzero_split.hpp",
    "nnz: i64, chunk: i64, k: i64, batch: i64, row_of: in I[l], line_of: in I[l], "
    "indices: in I[z], values: in T[z], values_step: i64, B: in T[l], B_ld: i64, B_step: i64, "
    "C: inout T[l], C_ld: i64, C_step: i64, alpha: T, beta: T, lines: i64, partial: out u8[l]",
    "{L}, {V}, {E}, {A}, {SEGMENTS}, {WHOLE}, {T}, {I}",
    variants=(),
    # R-MAT 2^16, 32 columns: eb-pr 38, with blocks of 256 43.
    block=64,
    resident=16,
)

#: Lanes per row if groups of lanes share one: four groups in a wave of 32.
SHARING_LANES = 8


class LaneShape(NamedTuple):
    """The arguments that all kernels of this module share.

    Attributes
    ----------
    shape : RowShape
        Lanes per row, and vectors per lane.
    each : int
        Elements per vector.
    tiles : int
        Number of column tiles, in which a row is processed.
    whole : int
        How the columns fit; see ``spmm.hpp``.
    values, operands : tuple
        Kernel arguments.
    """

    shape: ml.RowShape
    each: int
    tiles: int
    whole: int
    values: tuple[Any, ...]
    operands: tuple[Any, ...]

    @property
    def constants(self) -> dict[str, int]:
        """The template constants that are common to all kernels."""
        return {"L": self.shape.lanes, "V": self.shape.vectors, "E": self.each}


def prepare(
    on: Adapter,
    call: SpmmCall,
    most_lanes: int,
    waves: int,
    most_elements: int = ml.VECTOR_BYTES,
) -> LaneShape:
    """Return the division of ``B``'s columns among lanes, and the arguments that follow from it.

    Column tiles are halved as long as their ``waves`` would leave other waves idle.
    """
    k, item = int(call.C.shape[2]), call.C.dtype.itemsize
    of_B, of_C = on.read(call.B, call.A.indices.dtype), on.operand(call.C)
    weights, step = on.weights(call.values)
    each = vector_elements(item, k, of_B.places(item) + of_C.places(item), most_elements)
    vectors = -(-k // each)
    shape = ml.row_shape(vectors, most_lanes)
    # 512 x 2048, 95 %, 256 columns, pieces of 64: two vectors per lane 13.4, one 11.8.
    while (
        shape.vectors > 1 and waves * -(-vectors // (shape.lanes * shape.vectors)) < on.waves // 2
    ):
        shape = ml.RowShape(shape.lanes, shape.vectors // 2)
    width = shape.lanes * shape.vectors * each
    return LaneShape(
        shape,
        each,
        -(-k // width),
        2 if k == width == of_B.rows else int(k % width == 0),
        (weights, step),
        (*of_B, *of_C),
    )


def vector_elements(
    itemsize: int, columns: int, places: tuple[int, ...], most: int = ml.VECTOR_BYTES
) -> int:
    """Return the elements that a lane loads at once: the largest number that divides everything.

    Examples
    --------
    >>> vector_elements(4, 32, (0, 128)), vector_elements(4, 6, (0, 24)), vector_elements(4, 5, ())
    (4, 2, 1)
    """
    each = min(ml.VECTOR_BYTES // itemsize, most)
    while each > 1 and (columns % each or any(p % (each * itemsize) for p in places)):
        each //= 2
    return max(each, 1)


def by_rows(
    on: Adapter,
    items: Pieces,
    call: SpmmCall,
    *,
    waves: int = 1,
    most_lanes: int = ml.MOST_ROW_LANES,
    most_elements: int = ml.VECTOR_BYTES,
) -> None:
    """Assign rows or segments to waves, or to groups of lanes (0), then sum the segments."""
    A, C = call.A, call.C
    batch, _, k = C.shape
    # 2048 x 1024, 95 %, 256 columns: teams with two vectors per lane 20.3, with one 17.2.
    rows = items.items * batch if waves < 2 else 0
    made = prepare(on, call, most_lanes, rows, most_elements)
    partial = on.lines(batch * items.lines * k, C.dtype)
    each = 1 if waves else on.wave // made.shape.lanes
    on.launch(
        ml.csr_spmm if waves < 2 else ml.team_spmm(waves, on.wave),
        -(-items.items // each) * made.tiles * batch * on.wave * max(waves, 1),
        (
            items.items, k, batch, items.bounds, items.target, A.indices, *made.values,
            *made.operands, *call.factors, items.lines, partial,
        ),
        C.dtype,
        A.indices.dtype,
        **made.constants,
        # R-MAT 2^20, 128 columns: four rows ahead 1500, eight 1580; a uniform matrix 59 and 53.
        A=min(ml.steps_ahead(*made.shape), 4 if items.lines else ml.IN_FLIGHT),
        WAVES=waves,
        WHOLE=made.whole,
    )  # fmt: skip
    _join(on, items.cut_rows, items.first_line, items.lines, partial, call)


def _join(
    on: Adapter,
    rows: Array | None,
    first: Array | None,
    lines: int,
    partial: int,
    call: SpmmCall,
) -> None:
    """Sum the lines of cut rows."""
    C = call.C
    batch, _, k = C.shape
    cuts = 0 if rows is None else int(rows.size)
    if cuts:
        on.launch(
            ml.spmm_join,
            cuts * k * batch,
            (cuts, k, batch, rows, first, lines, partial, *on.operand(C), *call.factors),
            C.dtype,
            call.A.indices.dtype,
        )


class NonzeroSplit(NamedTuple):
    """The division of nonzeros into chunks; see ``spmm_nonzero_split.hpp``.

    Attributes
    ----------
    chunk : int
        Entries per chunk.
    row_of : array, shape (nnz + 1,)
        The row of each entry, followed by an index that is not a row.
    line_of : array, shape (2 * chunks,)
        The lines of the first and the last row of each chunk, or -1.
    lines : int
        Number of lines.
    rows, first_line : array
        The cut or empty rows, and the first line of each of them, with the end.
    """

    chunk: int
    row_of: Array
    line_of: Array
    lines: int
    rows: Array
    first_line: Array


_SPLIT: Key[NonzeroSplit] = Key("chunks of entries")


def split_nonzeros(xp: ModuleType, indptr: Array, nnz: int, chunk: int) -> NonzeroSplit:
    """Return the chunks of ``nnz`` entries.

    Parameters
    ----------
    xp : module
        NumPy, or a module with its functions for the arrays of a device.
    indptr : array
        Row pointers.
    nnz : int
        Entries of the matrix.
    chunk : int
        Entries per chunk.
    """
    kind, m = indptr.dtype, int(indptr.size) - 1
    bounds = indptr.astype(np.int64)
    row_of = xp.searchsorted(bounds[1:], xp.arange(nnz), side="right")
    begin = xp.arange(0, nnz, chunk)
    end = xp.minimum(begin + chunk, nnz)
    head, tail = row_of[begin], row_of[end - 1]
    # if a chunk has only one row, its sums go to the first row's line
    cut = [(bounds[r] < begin) | (bounds[r + 1] > end) for r in (head, tail)]
    cut[1] = cut[1] & (head != tail)
    is_line = xp.stack(cut, axis=1).ravel()
    line_of = xp.where(is_line, xp.cumsum(is_line) - 1, -1)
    of_line = xp.stack([head, tail], axis=1).ravel()[is_line]
    is_here = bounds[1:] == bounds[:-1]
    is_here[of_line] = True
    rows = xp.flatnonzero(is_here)
    first = xp.searchsorted(of_line, rows)
    last = xp.full(1, int(of_line.size), np.int64)
    return NonzeroSplit(
        chunk,
        xp.concatenate([row_of, xp.full(1, m, np.int64)]).astype(kind),
        line_of.astype(kind),
        int(of_line.size),
        rows.astype(kind),
        xp.concatenate([first, last]).astype(kind),
    )


def by_nonzeros(
    on: Adapter,
    chunks: NonzeroSplit,
    call: SpmmCall,
    *,
    segments: bool,
    most_elements: int = ml.VECTOR_BYTES,
) -> None:
    """Assign chunks of entries to waves or groups of lanes, then sum the rows that were cut."""
    A, C = call.A, call.C
    batch, _, k = C.shape
    lanes = SHARING_LANES if segments else ml.MOST_ROW_LANES
    waves = -(-A.nnz // chunks.chunk) * batch
    made = prepare(on, call, lanes, waves, most_elements)
    partial = on.lines(batch * chunks.lines * k, C.dtype)
    each = 1 if segments else on.wave // made.shape.lanes
    if A.nnz:
        on.launch(
            csr_spmm_nonzero_split,
            -(-A.nnz // (chunks.chunk * each)) * made.tiles * batch * on.wave,
            (
                A.nnz, chunks.chunk, k, batch, chunks.row_of, chunks.line_of, A.indices,
                *made.values, *made.operands, *call.factors, chunks.lines, partial,
            ),
            C.dtype,
            A.indices.dtype,
            **made.constants,
            A=ml.steps_ahead(*made.shape),
            SEGMENTS=int(segments),
            WHOLE=made.whole,
        )  # fmt: skip
    _join(on, chunks.rows, chunks.first_line, chunks.lines, partial, call)


class _Anywhere(RowAlgorithm):
    """A kernel that runs on every GPU and is selected by the common rule."""

    product: ClassVar[str] = "spmm"
    #: Upper bound of elements per vector that a lane loads.
    most_elements: ClassVar[int] = ml.VECTOR_BYTES
    source: ClassVar[str] = "Huang et al. (2021)"


class RowsInTurn(_Anywhere):
    """Work is split by rows, with one row per group of lanes."""

    name: ClassVar[str] = "rb-sr"
    waves: ClassVar[int] = 0
    most_lanes: ClassVar[int] = ml.MOST_ROW_LANES

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> Pieces:
        """Return the rows without a list of pieces."""
        return on.pieces(A, 0, sampled=False)

    def run(self, on: Adapter, state: Pieces, call: SpmmCall) -> None:
        """Multiply."""
        by_rows(
            on,
            state,
            call,
            waves=self.waves,
            most_lanes=self.most_lanes,
            most_elements=self.most_elements,
        )


class RowsReduced(RowsInTurn):
    """Work is split by rows, and small groups of lanes share a row."""

    by_rule: ClassVar[bool] = False
    name: ClassVar[str] = "rb-pr"
    waves: ClassVar[int] = 1
    most_lanes: ClassVar[int] = SHARING_LANES


class RowsReducedByElements(RowsReduced):
    """``rb-pr`` with loads of single elements of ``B``, to measure the gain of vectors."""

    name: ClassVar[str] = "rb-pr-scalar"
    most_elements: ClassVar[int] = 1


class Team(NamedTuple):
    """The rows, and the number of waves per row."""

    items: Pieces
    waves: int


class RowTeam(_Anywhere):
    """Work is split by rows, and the waves of a block share a row."""

    source: ClassVar[str] = ""
    name: ClassVar[str] = "row-team"

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> Team:
        """Return the rows, with at least two waves per row."""
        team = team_of(facts.statistics, on.waves, facts.columns, facts.itemsize, on.rules)
        return Team(on.pieces(A, 0, sampled=False), max(team, 2))

    def run(self, on: Adapter, state: Team, call: SpmmCall) -> None:
        """Multiply."""
        by_rows(on, state.items, call, waves=state.waves)


class EntriesInTurn(_Anywhere):
    """Work is split by entries, with one chunk per group of lanes."""

    name: ClassVar[str] = "eb-sr"
    copies: ClassVar[bool] = True
    segments: ClassVar[bool] = False

    def chunk(self, on: Adapter, nnz: int) -> int:
        """Return the number of entries per chunk."""
        chunks = on.rules.wave_chunks if self.segments else on.rules.group_chunks
        return next(chunk for least, chunk in reversed(chunks.items()) if nnz >= least)

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> NonzeroSplit:
        """Return the chunks, made once per pattern."""
        chunk = self.chunk(on, A.nnz)
        return A._pattern.get(
            _SPLIT.of_size(chunk),
            lambda: on.executor.planned(
                max(A.nnz, A.shape[0]), split_nonzeros, A.indptr, nnz=A.nnz, chunk=chunk
            ),
        )

    def run(self, on: Adapter, state: NonzeroSplit, call: SpmmCall) -> None:
        """Multiply."""
        by_nonzeros(
            on,
            state,
            call,
            segments=self.segments,
            most_elements=self.most_elements,
        )


class EntriesReduced(EntriesInTurn):
    """Work is split by entries, and a wave sums the segments of its chunk."""

    name: ClassVar[str] = "eb-pr"
    segments: ClassVar[bool] = True


class EntriesReducedByElements(EntriesReduced):
    """``eb-pr`` with loads of single elements of ``B``, to measure the gain of vectors."""

    by_rule: ClassVar[bool] = False
    name: ClassVar[str] = "eb-pr-scalar"
    most_elements: ClassVar[int] = 1
