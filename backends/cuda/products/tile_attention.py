"""16-bit attention by dense tiles on tensor cores, for patterns that fill their tiles.

A tile of 128 x 64 scores costs the same for any number of entries; one word of bits per row marks
its entries. Masks and windows of attention fill their tiles. From some 3 % on, tiles are faster
than gathering two rows for every entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ....core.algorithm import Facts, multiply
from ....core.calls import FusedmmCall, GradientCall
from ...gpu.products import choice as product_choice
from ...gpu.products import declarations as ml
from ...gpu.products.adapter import NOTHING, Adapter
from ...gpu.products.gradients import FusedAlgorithm
from ...unified.wrappers import SimtKernel
from . import attention_operands
from .constants import RowAttentionConstants, TileAttentionConstants
from .launches import launch_kernel
from .row_times import MANY, RowSizes
from .tile_pattern import COLUMNS, ROWS, Tiles, filled, tiles_of, transposed_tiles_of
from .tile_shapes import (
    WIDTHS,
    TileShape,
    pays,
    shapes_for,
    width_of,
)

if TYPE_CHECKING:
    from ....core.formats.csr import Csr
    from ..runtime.device import CudaDevice

_TILES = (
    "order: in i32[l], starts: in i32[l], columns: in i32[l], masks: in i32[l], words: in u8[l]"
)
_SIZES = "m: i64, n: i64, k: i64, p: i64, batch: i64"
_OPERANDS = ", ".join(ml.operand(name) for name in "CBD")

tile_attention = SimtKernel(
    "tile_attention",
    "cuda/products/tile_attention.hpp",
    f"{_SIZES}, panels: i64, {_TILES}, {_OPERANDS}, {ml.operand('out', 'out')}, "
    f"{ml.log_totals()}, alpha: T",
    "{DIM}, {M}, {WARPGROUPS}, {WHOLE}, {T}",
    variants=(),
)
tile_row_gradients = SimtKernel(
    "tile_row_gradients",
    "cuda/products/tile_gradients.hpp",
    f"{_SIZES}, panels: i64, {_TILES}, {_OPERANDS}, {ml.operand('G')}, "
    f"{ml.operand('out')}, {ml.log_totals('in')}, logs: out R[l], means: out R[l], "
    f"{ml.operand('of_C', 'out')}, alpha: T",
    "{DIM}, {M}, {WARPGROUPS}, {WIDE}, {STAGES}, {WHOLE}, {KNOWN}, {T}",
    variants=(),
)
tile_column_gradients = SimtKernel(
    "tile_column_gradients",
    "cuda/products/tile_gradients.hpp",
    f"{_SIZES}, padded: i64, {_TILES}, {_OPERANDS}, {ml.operand('G')}, logs: in R[l], "
    f"means: in R[l], {ml.operand('of_B', 'out')}, {ml.operand('of_D', 'out')}, alpha: T",
    "{DIM}, {M}, {WARPGROUPS}, {WIDE}, {STAGES}, {WHOLE}, {T}",
    variants=(),
)

#: Bytes of memory per entry while tiles are made: five arrays of int64.
BYTES_TO_PLAN = 40

#: Bytes of a mask.
MASK_BYTES = 8 * ROWS


class TileKernel(NamedTuple):
    """A kernel for a shape and a width.

    Attributes
    ----------
    kernel : SimtKernel
        The kernel; its block has the warps that share a panel of rows.
    constants : dict
        The template's constants, except ``WHOLE``.
    shared : int
        Shared memory of a block in bytes.
    """

    kernel: SimtKernel
    constants: dict[str, int]
    shared: int


@cache
def made_for(kernel: SimtKernel, shape: TileShape, width: int, warpgroups: bool) -> TileKernel:
    """Return a kernel for rows of dense operands of ``width`` values, one of :data:`WIDTHS`."""
    of_row, groups = 2 * width, shape.groups
    made = replace(kernel, block=256 // groups, resident=shape.resident)
    constants = {"DIM": width, "M": groups, "WARPGROUPS": int(warpgroups)}
    panels, facts = 1, 0
    if kernel is not tile_attention:
        constants |= {"WIDE": shape.wide, "STAGES": shape.stages}
        panels = 2
    if kernel is tile_column_gradients:
        facts = 1024  # 8 * COLUMNS, rounded up to the alignment of stages
    stage = 2 * COLUMNS * of_row + MASK_BYTES + facts
    return TileKernel(made, constants, panels * ROWS * of_row + shape.stages * stage)


def kernel_for(device: CudaDevice, kernel: SimtKernel, width: int) -> TileKernel:
    """Return a kernel for a device and a width of rows."""
    shapes = shapes_for(device)
    return made_for(kernel, shapes.kernels[kernel.name][width], width, shapes.warpgroups)


class TileState(NamedTuple):
    """The state of a plan.

    Attributes
    ----------
    tiles : Tiles
        The tiles of the pattern.
    filled, most : int
        Number of tiles, and the largest number of tiles in a panel.
    rows : str
        The algorithm for calls that tiles do not support: other edge functions, and values.
    """

    tiles: Tiles
    filled: int
    most: int
    rows: str

    def pays(self, on: Adapter, call: FusedmmCall | GradientCall) -> bool:
        """Return whether tiles are faster than rows for a batch, or for its gradients."""
        (batch, m, k), (n, p) = call.C.shape, call.D.shape[1:]
        sizes = RowSizes(m, n, call.A.nnz, batch, k, p)
        gradients = isinstance(call, GradientCall)
        of_tiles, of_rows = rules_of(on)
        shapes = shapes_for(on.executor.device, of_tiles)
        return pays(shapes, self.filled, self.most, sizes, of_rows, gradients=gradients)


def rules_of(on: Adapter) -> tuple[TileAttentionConstants, RowAttentionConstants]:
    """Return the device's constants of attention by tiles and by rows."""
    constants = on.executor.constants
    return constants.of(TileAttentionConstants), constants.of(RowAttentionConstants)


class TileAttention(FusedAlgorithm):
    """Dense tiles of scores and sums on tensor cores; bit masks mark the entries."""

    name: ClassVar[str] = "tile-mma"
    copies: ClassVar[bool] = True
    source: ClassVar[str] = "Dao (2023)"
    by_rule: ClassVar[bool] = False
    repeats: ClassVar[bool] = True

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why tiles cannot be used, or None."""
        return obstacle(on, facts.dtype, facts.columns)

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return None: the number of tiles in a batch decides, see :class:`TilesOrRows`."""
        return None

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> TileState:
        """Make and return the tiles."""
        rows = product_choice.choose("fusedmm", facts.statistics, on.waves, rules=on.rules).kernel
        tiles = tiles_of(on.executor.xp, A)
        longest = tiles.order[:1]
        most = on.executor.to_host(tiles.starts[longest + 1] - tiles.starts[longest])
        return TileState(tiles, int(tiles.columns.size), int(most[0]), rows)

    def run(self, on: Adapter, state: TileState, call: FusedmmCall) -> None:
        """Compute attention, 128 columns of ``D`` at a time."""
        if call.edge != "softmax" or call.values is not None:
            multiply(on, call._replace(kernel=state.rows))
            return
        attend(on, state.tiles, call)

    def gradients(self, on: Adapter, state: TileState, call: GradientCall) -> None:
        """Compute the gradients by tiles, or by the row algorithm for other calls."""
        if self.tiles_do(on, state, call):

            def turned() -> Tiles:
                return transposed_tiles_of(on.executor.xp, call.A)

            gradients_of_attention(on, state.tiles, turned, call)
        else:
            super().gradients(on, state, call)

    def launches_gradients(self, on: Adapter, state: TileState, call: GradientCall) -> bool:
        """Return whether tiles, or else the kernels by rows and columns, only launch kernels."""
        return self.tiles_do(on, state, call) or self.by_rows(on, state, call)

    def has_rows(self, state: TileState) -> bool:
        """Return whether the fallback algorithm assigns whole rows to waves."""
        return state.rows == "row-split"

    def tiles_do(self, on: Adapter, state: TileState, call: GradientCall) -> bool:
        """Return whether tiles support the call: softmax of up to 128 columns, without values."""
        fits = call.D.shape[2] <= WIDTHS[-1] and all(x.size for x in (call.C, call.B, call.D))
        plain = call.edge == "softmax" and call.values is None and call.of_values is None
        return bool(fits and plain)


class TilesOrRows(TileAttention):
    """Tiles if a batch has enough of them to be faster, else one pass by rows."""

    name: ClassVar[str] = "tiles-or-rows"
    source: ClassVar[str] = ""
    by_rule: ClassVar[bool] = True

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why tiles are faster, or None."""
        if A.nnz == 0 or A.nnz * BYTES_TO_PLAN > on.executor.free_memory():
            return None
        part = filled(on.executor.xp, A, on.executor.to_host)
        tiles = ceil(A.nnz / (max(part, 1e-9) * ROWS * COLUMNS))
        m, n = A.shape
        sizes = RowSizes(m, n, A.nnz, MANY, facts.columns, facts.columns)
        of_tiles, of_rows = rules_of(on)
        shapes, most = shapes_for(on.executor.device, of_tiles), min(ceil(n / COLUMNS), tiles)
        if not any(pays(shapes, tiles, most, sizes, of_rows, gradients=g) for g in (False, True)):
            return None
        return f"{part:.0%} of the positions of its tiles are entries"

    def run(self, on: Adapter, state: TileState, call: FusedmmCall) -> None:
        """Choose tiles or rows for the batch, and run them."""
        if state.pays(on, call):
            super().run(on, state, call)
        else:
            multiply(on, call._replace(kernel=state.rows))

    def tiles_do(self, on: Adapter, state: TileState, call: GradientCall) -> bool:
        """Return whether tiles support the gradients and are faster."""
        return state.pays(on, call) and super().tiles_do(on, state, call)


def attend(on: Adapter, tiles: Tiles, call: FusedmmCall) -> None:
    """Launch the softmax kernel for 128 columns of ``D`` at a time; only the first stores logs."""
    C, D, alpha = call.C, call.D, call.alpha
    (batch, m, k), (n, p) = C.shape, D.shape[1:]
    operands = [attention_operands.read(on, array) for array in (C, call.B, D)]
    operands.append(on.operand(call.E))
    item = C.dtype.itemsize
    logs = on.of_rows(call.log_totals)
    for first in range(0, max(p, 1), WIDTHS[-1]):
        columns = min(p - first, WIDTHS[-1])
        *sources, of_D, of_E = operands
        of_D, of_E = (o._replace(address=o.address + first * item) for o in (of_D, of_E))
        parts = (*sources, of_D, of_E)
        width = width_of(k, columns)
        made = kernel_for(on.executor.device, tile_attention, width)
        launch_kernel(
            on, made.kernel, tiles.panels * batch,
            (
                m, n, k, columns, batch, tiles.panels, *_flat(on, tiles), *sum(parts, ()), *logs,
                alpha,
            ),
            C.dtype, np.int32, shared=made.shared, **made.constants,
            WHOLE=attention_operands.whole(item, (k, columns), parts),
        )  # fmt: skip
        logs = on.of_rows(None)


def gradients_of_attention(
    on: Adapter,
    tiles: Tiles,
    transposed: Callable[[], Tiles],
    call: GradientCall,
) -> None:
    """Launch the gradient kernel by rows, then the kernel by columns, which reads its row sums.

    Parameters
    ----------
    on : Adapter
        The executor's adapter.
    tiles : Tiles
        The tiles of the pattern.
    transposed : callable
        Returns the tiles of the transposed pattern.
    call : GradientCall
        The operands.
    """
    C, D, E, log_totals, alpha = call.C, call.D, call.E, call.log_totals, call.alpha
    (batch, m, k), (n, p) = C.shape, D.shape[1:]
    width, dtype = width_of(k, p), C.dtype
    padded = tiles.panels * ROWS
    logs = on.scratch(8 * batch * padded)
    means = logs + 4 * batch * padded
    sources = [attention_operands.read(on, array) for array in (C, call.B, D, call.G)]
    of_E = NOTHING if E is None else attention_operands.read(on, E)
    to_C, to_B, to_D = targets = [on.operand(x) for x in (call.of_C, call.of_B, call.of_D)]
    whole = attention_operands.whole(dtype.itemsize, (k, p), (*sources, of_E, *targets))
    operands = sum(sources, ())
    by_rows = kernel_for(on.executor.device, tile_row_gradients, width)
    launch_kernel(
        on, by_rows.kernel, tiles.panels * batch,
        (
            m, n, k, p, batch, tiles.panels, *_flat(on, tiles), *operands, *of_E,
            *on.of_rows(log_totals), logs, means, *to_C, alpha,
        ),
        dtype, np.int32, shared=by_rows.shared, **by_rows.constants, WHOLE=whole,
        KNOWN=int(log_totals is not None),
    )  # fmt: skip
    if call.of_B is None and call.of_D is None:
        return
    turned = transposed()
    by_columns = kernel_for(on.executor.device, tile_column_gradients, width)
    launch_kernel(
        on, by_columns.kernel, turned.panels * batch,
        (
            m, n, k, p, batch, padded, *_flat(on, turned), *operands, logs, means, *to_B,
            *to_D, alpha,
        ),
        dtype, np.int32, shared=by_columns.shared, **by_columns.constants, WHOLE=whole,
    )  # fmt: skip


def obstacle(on: Adapter, dtype: str, columns: int) -> str | None:
    """Return why a device does not support tiles for operands of a dtype and width, or None."""
    device = on.executor.device
    result = attention_operands.obstacle(device, dtype, columns, WIDTHS[-1])
    if result is not None:
        return result
    need = kernel_for(on.executor.device, tile_attention, WIDTHS[-1]).shared
    if device.shared_bytes < need:
        return f"it needs {need} bytes of shared memory, and there are {device.shared_bytes}"
    return None


def _flat(on: Adapter, tiles: Tiles) -> tuple[Any, ...]:
    return (*tiles[1:-1], on.address(tiles.words))
