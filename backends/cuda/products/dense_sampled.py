"""Sampled products by a dense product that is read at the positions of the pattern.

If entries are not very few and rows of ``C`` and ``B`` are long, the fastest kernel for 16-bit
values is cuBLAS's dense product, although it computes unsampled positions too: from a density of
some 3 % on with 512 columns. The dense product goes to scratch memory, one panel of rows at a time;
a second kernel reads the entries out of it.

Samples are rounded once. For plain ``alpha C B^T``, cuBLAS rounds its sums to 16-bit numbers in the
panel; with values or ``beta``, the panel has the dtype of the sums. An entry depends only on its
row of ``C`` and its row of ``B``, so infinities and NaN need no special care.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ....core.algorithm import Estimate, Facts
from ....core.calls import SddmmCall
from ...gpu.products import choice as product_choice
from ...gpu.products.algorithm import GpuAlgorithm
from ...unified.wrappers import SimtKernel
from .constants import DENSE_PRODUCTS, DenseProductConstants
from .dense import CHOSEN, DTYPES, MEMORY
from .dense_library import multiply, taken
from .launches import launch_kernel
from .tile_sddmm import TILE, Tile, TileMma, sorted_rows

if TYPE_CHECKING:
    from ....core.formats.csr import Csr
    from ...gpu.base import GpuExecutor
    from ...gpu.products.adapter import Adapter

dense_sample = SimtKernel(
    "dense_sample",
    "cuda/products/dense.hpp",
    "first: i64, items: i64, top: i64, ld: i64, bounds: in I[l], target: in I[l], "
    "indices: in I[z], values: in T[z], product: in u8[l], sampled: inout T[z], alpha: T, beta: T",
    "{PLAIN}, {T}, {I}",
    variants=(),
)

#: Upper bound of a panel in bytes. A panel that stays in the L2 cache saves memory traffic, but
#: each panel costs two launches, and the first of them fills the device at most once.
PANEL_BYTES = 256 << 20
#: With several panels, their number of rows is a multiple of this size of cuBLAS's tiles.
PANEL_ROWS = 256
#: Entries of a row that one wave samples.
PIECE = 256
#: Alignment in elements of a panel's rows, and of operands' rows for best speed: tensor cores are
#: fed 16 bytes at a time.
EACH = 8
#: Bytes of a memory sector, the smallest unit that a read loads.
SECTOR = 32


class SampledPanels(NamedTuple):
    """Panels of rows, and the lists of entries that waves sample in them.

    Attributes
    ----------
    rows : int
        Rows per panel.
    pieces : Pieces
        The work items of the sampling waves.
    first : list of int
        The first work item of each panel, and the end.
    """

    rows: int
    pieces: product_choice.Pieces
    first: list[int]


class SampledDense(GpuAlgorithm):
    """The dense product of a panel of rows at a time, sampled at the entries."""

    name: ClassVar[str] = "dense"
    tiles: ClassVar[tuple[Tile, ...]] = (Tile(), TileMma())

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why this algorithm cannot run, or None."""
        if facts.dtype not in DTYPES:
            return f"it is for {', '.join(DTYPES)}, not {facts.dtype}"
        rows, columns = facts.statistics.rows, facts.statistics.columns
        if max(rows, columns, facts.columns) >= 2**31 - EACH:
            return "the library counts rows and columns in 32 bits"
        return None

    def estimate(self, on: Adapter, A: Csr, facts: Facts) -> Estimate | None:
        """Return the expected cost of 16-bit samples; wider values were not timed."""
        if facts.dtype not in CHOSEN:
            return None
        rules = on.executor.constants.of(DenseProductConstants)
        return Estimate(dense_seconds(facts, 4, rules) * 1e6)

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return that it is expected to be faster, even with values; or None."""
        if facts.dtype not in CHOSEN or facts.columns % EACH or not facts.columns:
            return None
        executor, statistics = on.executor, facts.statistics
        if executor.device.capability < (8, 0):  # tensor cores of older devices have not been timed
            return None
        tiled = not A.is_lean and any(
            not tile.objection(on, A, facts) and tile.reason(on, A, facts) and sorted_rows(A)
            for tile in self.tiles
        )
        rules = executor.constants.of(DenseProductConstants)
        sparse, dense = sparse_seconds(facts, rules, tiled=tiled), dense_seconds(facts, 4, rules)
        if dense * rules.sampled_margin > sparse:
            return None
        if min(PANEL_ROWS, statistics.rows) * statistics.columns * 4 > most_bytes(executor):
            return None
        return (
            f"with {facts.density:.1%} of the entries the dense product should take "
            f"{dense * 1e6:.0f} microseconds and the sampled one {sparse * 1e6:.0f}"
        )

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> SampledPanels:
        """Return panels that fit into memory, with elements in the dtype of the sums."""
        m, n = A.shape
        line = distance_in_panel(n) * max(facts.itemsize, 4)
        rows = rows_of_panel(m, most_bytes(on.executor) // line)
        pieces = on.pieces(A, PIECE, sampled=True)
        if rows >= m:
            return SampledPanels(rows, pieces, [0, pieces.items])
        assert pieces.target is not None
        xp = on.executor.xp
        tops = xp.arange(0, m, rows).astype(A.indices.dtype)
        first = on.executor.to_host(xp.searchsorted(pieces.target[: pieces.items], tops))
        return SampledPanels(rows, pieces, [*first.tolist(), pieces.items])

    def run(self, on: Adapter, state: SampledPanels, call: SddmmCall) -> None:
        """Multiply and sample each block, panel by panel."""
        A, values, C, B, S = call.A, call.values, call.C, call.B, call.S
        alpha, beta = call.alpha, call.beta
        executor, dtype, item = on.executor, C.dtype, C.dtype.itemsize
        (batch, m, k), n = C.shape, A.shape[1]
        rows, pieces, first = state
        # With alpha = 0, cuBLAS ignores the operands, but infinity times 0 must give NaN.
        plain = values is None and beta == 0 and alpha != 0
        held = dtype if plain or item >= 4 else np.dtype(np.float32)
        panel = executor.allocate((min(rows, m), distance_in_panel(n)), held)
        weights, step = on.weights(values)
        for b in range(batch):
            left, right = C[b], B[b]
            if k:
                left, right = taken(executor, left), taken(executor, right)
            mine = 0 if weights is None else on.address(weights) + b * step * item
            for p, begin in enumerate(first[:-1]):
                items, top = first[p + 1] - begin, p * rows
                if not items:
                    continue
                product = panel[: min(rows, m - top), :n]
                if k:
                    factor = alpha if plain else 1.0
                    of_C = left[top : top + rows]
                    multiply(executor, of_C, right, product, factor, transposed=True)
                else:
                    panel.view(np.uint8).fill(0)
                launch_kernel(
                    on,
                    dense_sample,
                    -(-(items * on.wave) // dense_sample.block),
                    (
                        begin, items, top, panel.shape[1], pieces.bounds, pieces.target, A.indices,
                        mine, on.address(panel), on.address(S) + b * int(S.strides[0]), alpha, beta,
                    ),
                    dtype,
                    A.indices.dtype,
                    PLAIN=int(plain),
                )  # fmt: skip


def most_bytes(executor: GpuExecutor) -> int:
    """Return the largest size of a panel in bytes."""
    return min(PANEL_BYTES, int(MEMORY * executor.free_memory()))


def distance_in_panel(columns: int) -> int:
    """Return the row stride of a panel in elements."""
    return max(-(-columns // EACH) * EACH, EACH)


def rows_of_panel(m: int, most: int) -> int:
    """Return the rows per panel, for panels of nearly equal size with at most ``most`` rows.

    Examples
    --------
    >>> rows_of_panel(11008, 16384), rows_of_panel(32768, 8192), rows_of_panel(11008, 5000)
    (11008, 8192, 3840)
    """
    if most >= m:
        return max(m, 1)
    rows = -(-m // -(-m // max(most, 1)))
    whole = -(-rows // PANEL_ROWS) * PANEL_ROWS
    return whole if whole <= most else rows


def dense_seconds(
    facts: Facts, itemsize: int, rules: DenseProductConstants = DENSE_PRODUCTS
) -> float:
    """Return the expected time of the dense product and its sampling, in seconds.

    The dense product is bound by its operations or by its memory traffic. The sampling loads the
    sectors of the panel that contain at least one entry, the indices, and the samples.

    Parameters
    ----------
    facts : Facts
        The pattern, the number of columns and the dtype.
    itemsize : int
        Bytes of an element of the panel.
    rules : DenseProductConstants
        The constants of the device.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> weights = RowStatistics(11008, 4096, 9_017_754, 819.2, 25.6, 920, 0.0)
    >>> facts = Facts(weights, 512, "float16", np.dtype(np.int32))
    >>> [round(dense_seconds(facts, itemsize) * 1e6) for itemsize in (2, 4)]
    [103, 119]
    """
    s, k, item = facts.statistics, facts.columns, facts.itemsize
    places = s.rows * s.columns
    panels = -(-places * max(item, 4) // PANEL_BYTES)
    moved = (s.rows + s.columns) * k * item + places * itemsize
    product = max(2 * places * k / rules.flops, moved / rules.rate)
    touched = 1 - (1 - min(facts.density, 1.0)) ** (SECTOR // itemsize)
    read = touched * places * itemsize + s.nnz * (facts.index_dtype.itemsize + 2 * item)
    return 2 * rules.launch * panels + product + read / rules.rate


def sparse_seconds(
    facts: Facts, rules: DenseProductConstants = DENSE_PRODUCTS, *, tiled: bool
) -> float:
    """Return the expected time of 16-bit dot products in seconds, by entries or by tiles.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> weights = RowStatistics(8192, 8192, 6_710_886, 819.2, 27.0, 930, 0.0)
    >>> facts = Facts(weights, 256, "float16", np.dtype(np.int32))
    >>> [round(sparse_seconds(facts, tiled=tiled) * 1e6) for tiled in (False, True)]
    [321, 83]
    """
    s, k = facts.statistics, facts.columns
    if not tiled:
        return rules.launch + s.nnz * (rules.entry + rules.entry_column * k)
    tiles = -(-s.rows // TILE) * -(-s.columns // TILE)
    many = max(0.0, s.nnz - rules.tile_entries * s.rows * s.columns)
    return rules.launch + tiles * (rules.tile + rules.tile_column * k) + many * rules.tile_entry
