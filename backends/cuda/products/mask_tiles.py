"""16-bit attention with interval masks, by dense tiles on tensor cores.

The kernels are the same as for other patterns that fill their tiles. A mask needs only bit masks,
which tiles share, and two numbers for each tile of 8192 positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ....core.calls import FusedmmCall, GradientCall
from ....core.store import Key
from ...gpu.products.adapter import Adapter
from ...gpu.products.masks import MaskAlgorithm, MaskCall, MaskRows, register
from ..table import kernel
from .constants import RowAttentionConstants, TileAttentionConstants
from .row_times import RowSizes
from .tile_attention import attend, gradients_of_attention, obstacle
from .tile_pattern import Tiles, make_interval_tiles
from .tile_shapes import WIDTHS, pays, shapes_for

if TYPE_CHECKING:
    from ....core.formats.mask import Mask


class _Made(NamedTuple):
    """The tiles of a mask on a device, their number, and the largest number in a panel."""

    tiles: Tiles
    filled: int
    most: int


_MADE: Key[_Made] = Key("tiles of a mask")


def _tiles_of(on: Adapter, A: Mask) -> _Made:
    """Return the tiles of a mask, which are made once."""

    def make() -> _Made:
        executor = on.executor
        first, last = (np.asarray(executor.to_host(end)) for end in (A.first, A.last))
        tiles = make_interval_tiles(first, last, A.shape[1])
        most = int(np.diff(tiles.starts).max(initial=0))
        there = (executor.from_host(array) for array in tiles[1:])
        return _Made(Tiles(tiles.panels, *there), int(tiles.columns.size), most)

    made: _Made = A._pattern.get(_MADE, make)
    return made


class MaskTiles(MaskAlgorithm):
    """Dense tiles of scores and sums; bit masks mark the intervals of rows."""

    name: ClassVar[str] = "tile-mma"

    def objection(self, on: Adapter, call: MaskCall) -> str | None:
        """Return why tiles cannot be used, or None."""
        if call.edge != "softmax":
            return f"it computes softmax, not {call.edge}"
        return obstacle(on, call.C.dtype.name, call.C.shape[2])

    def suits(self, on: Adapter, call: MaskCall) -> bool:
        """Return whether tiles can be used and are faster than rows."""
        A, C, D = call.A, call.C, call.D
        if self.objection(on, call) or A.nnz == 0:
            return False
        _, filled, most = _tiles_of(on, A)
        batch, m, k = C.shape
        constants = on.executor.constants
        shapes = shapes_for(on.executor.device, constants.of(TileAttentionConstants))
        sizes = RowSizes(m, A.shape[1], A.nnz, batch, k, D.shape[2])
        return pays(shapes, filled, most, sizes, constants.of(RowAttentionConstants))

    def run(self, on: Adapter, call: FusedmmCall[Mask]) -> None:
        """Compute attention, 128 columns of ``D`` at a time."""
        attend(on, _tiles_of(on, call.A).tiles, call)

    def gradients(self, on: Adapter, call: GradientCall[Mask]) -> None:
        """Compute the gradients by rows, then by columns; beyond 128 columns use row kernels."""
        A, C, B, D = call.A, call.C, call.B, call.D
        if D.shape[2] > WIDTHS[-1] or not all(x.size for x in (C, B, D)):
            MaskRows().gradients(on, call)
            return
        tiles = _tiles_of(on, A).tiles
        gradients_of_attention(on, tiles, lambda: _tiles_of(on, A.T).tiles, call)


#: The algorithms in the order in which the rule considers them.
ALGORITHMS: tuple[MaskAlgorithm, ...] = (MaskTiles(), MaskRows())


register(ALGORITHMS, kernel)
