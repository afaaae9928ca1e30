"""Launch shapes of the kernels of attention by tiles, their estimated times, and when they pay."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from . import row_times
from .constants import (
    ROW_ATTENTION,
    TILE_ATTENTION,
    RowAttentionConstants,
    TileAttentionConstants,
)
from .tile_pattern import COLUMNS, ROWS

if TYPE_CHECKING:
    from ..runtime.device import CudaDevice

#: Columns of dense operands that there are kernels for.
WIDTHS = (32, 64, 128)


class TileShape(NamedTuple):
    """How a kernel is made for a number of columns.

    Attributes
    ----------
    groups : int
        Groups of 16 rows that a warp has; warps of a block share 128 rows.
    wide : int
        Columns of a tile that are computed at once.
    stages : int
        Tiles in shared memory.
    resident : int
        Blocks that a multiprocessor holds, which bounds registers.
    """

    groups: int
    wide: int = COLUMNS
    stages: int = 2
    resident: int = 2


class Shapes(NamedTuple):
    """The shapes of the three kernels, for up to a number of columns, and their times.

    Attributes
    ----------
    kernels : dict
        By the name of the kernel and by columns: for the product, the gradients of ``C``, and the
        gradients of ``B`` and ``D``.
    rules : TileAttentionConstants
        The constants of the device.
    warpgroups : bool
        Whether products are asked for by warpgroups, with the instructions of Hopper.
    """

    kernels: dict[str, dict[int, TileShape]]
    rules: TileAttentionConstants = TILE_ATTENTION
    warpgroups: bool = False

    @property
    def in_turn(self) -> dict[int, float]:
        """The time of a tile of one block, which has its tiles one after the other."""
        return self.rules.groups_in_turn if self.warpgroups else self.rules.in_turn

    @property
    def together(self) -> dict[int, float]:
        """The time of a tile among all tiles that a device holds."""
        return self.rules.groups_together if self.warpgroups else self.rules.together

    @property
    def gradients(self) -> dict[int, tuple[float, float]]:
        """The time of gradients relative to the product."""
        return self.rules.groups_gradients if self.warpgroups else self.rules.gradients


#: By warps.
WARPS = Shapes(
    {
        "tile_attention": {32: TileShape(2), 64: TileShape(2), 128: TileShape(2)},
        "tile_row_gradients": {32: TileShape(1), 64: TileShape(1), 128: TileShape(2, 32, 1)},
        "tile_column_gradients": {
            32: TileShape(2, 32),
            64: TileShape(2, 32),
            128: TileShape(1, resident=1),
        },
    },
)
#: By warpgroups.
WARPGROUPS = Shapes(
    {
        "tile_attention": {32: TileShape(1), 64: TileShape(1), 128: TileShape(1)},
        "tile_row_gradients": {32: TileShape(1), 64: TileShape(1), 128: TileShape(1, 32, 1)},
        "tile_column_gradients": {
            32: TileShape(1, 32),
            64: TileShape(1, 32),
            128: TileShape(1, resident=1),
        },
    },
    warpgroups=True,
)


def shapes_for(device: CudaDevice, rules: TileAttentionConstants = TILE_ATTENTION) -> Shapes:
    """Return the shapes of the kernels that a device runs, and their times by its constants."""
    shapes = WARPGROUPS if device.capability == (9, 0) else WARPS
    return shapes._replace(rules=rules)


def pays(
    shapes: Shapes,
    filled: int,
    most: int,
    sizes: row_times.RowSizes,
    of_rows: RowAttentionConstants = ROW_ATTENTION,
    *,
    gradients: bool = False,
) -> bool:
    """Return whether tiles, or their gradients, are faster than rows.

    Parameters
    ----------
    shapes : Shapes
        Of the device's kernels.
    filled, most : int
        How many tiles there are, and how many the panel of most has.
    sizes : Sizes
        Of the product; tiles have up to 128 columns of ``D`` at a time, and so are compared.
    of_rows : RowAttentionConstants
        The constants of the device for rows.
    gradients : bool
        Whether gradients are asked for.
    """
    sizes = sizes._replace(p=min(sizes.p, WIDTHS[-1]))
    by_rows = row_times.time_of(sizes, of_rows, gradients=gradients)
    return time_of(shapes, filled, most, sizes, gradients=gradients) < by_rows


def time_of(
    shapes: Shapes, filled: int, most: int, sizes: row_times.RowSizes, *, gradients: bool = False
) -> float:
    """Return the microseconds of tiles, or of their gradients; see :func:`pays`.

    Panels of columns are taken to be as uneven as panels of rows.
    """
    k, p = sizes.k, min(sizes.p, WIDTHS[-1])
    width = width_of(k, p)

    def of(most: float) -> float:
        return max(most * shapes.in_turn[width], filled * sizes.batch * shapes.together[width])

    tiles = of(most)
    if gradients:
        by_rows, by_columns = shapes.gradients[width]
        turned = most * ceil(sizes.m / ROWS) / max(ceil(sizes.n / ROWS), 1)
        tiles = by_rows * tiles + by_columns * of(turned)
    return shapes.rules.launch + tiles * (
        1 if k % 8 == 0 and p % 8 == 0 else shapes.rules.not_whole
    )


def width_of(k: int, p: int) -> int:
    """Return the columns that a kernel is made for."""
    return next(width for width in WIDTHS if width >= max(k, p))
