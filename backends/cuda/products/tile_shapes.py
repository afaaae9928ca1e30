"""Launch shapes of attention by tiles, their estimated times, and when they pay."""

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

#: Columns of dense operands that the kernels support.
WIDTHS = (32, 64, 128)


class TileShape(NamedTuple):
    """The compile-time shape of a kernel for a number of columns.

    Attributes
    ----------
    groups : int
        Groups of 16 rows per warp; the warps of a block share 128 rows.
    wide : int
        Columns of a tile that are computed at once.
    stages : int
        Tiles in shared memory.
    resident : int
        Blocks that should be resident on a multiprocessor, which bounds registers.
    """

    groups: int
    wide: int = COLUMNS
    stages: int = 2
    resident: int = 2


class Shapes(NamedTuple):
    """The shapes of the three kernels for each width, and their times.

    Attributes
    ----------
    kernels : dict
        Shapes by the kernel's name and by columns: for the product, the gradients of ``C``, and the
        gradients of ``B`` and ``D``.
    rules : TileAttentionConstants
        The constants of the device.
    warpgroups : bool
        Whether warpgroups compute the products, with Hopper's instructions.
    """

    kernels: dict[str, dict[int, TileShape]]
    rules: TileAttentionConstants = TILE_ATTENTION
    warpgroups: bool = False

    @property
    def in_turn(self) -> dict[int, float]:
        """The time per tile of one block, which processes its tiles one after the other."""
        return self.rules.groups_in_turn if self.warpgroups else self.rules.in_turn

    @property
    def together(self) -> dict[int, float]:
        """The time per tile while the device is full."""
        return self.rules.groups_together if self.warpgroups else self.rules.together

    @property
    def gradients(self) -> dict[int, tuple[float, float]]:
        """The times of the gradients relative to the product."""
        return self.rules.groups_gradients if self.warpgroups else self.rules.gradients


#: The shapes of kernels for warps.
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
#: The shapes of kernels for warpgroups.
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
    """Return the shapes of a device's kernels, with the constants of their times."""
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
        The shapes of the device's kernels.
    filled, most : int
        Number of tiles, and the largest number of tiles in a panel.
    sizes : Sizes
        The sizes of the product. Tiles process up to 128 columns of ``D`` at a time, so that many
        are compared.
    of_rows : RowAttentionConstants
        The device's constants for rows.
    gradients : bool
        Compare the gradients instead of the product.
    """
    sizes = sizes._replace(p=min(sizes.p, WIDTHS[-1]))
    by_rows = row_times.time_of(sizes, of_rows, gradients=gradients)
    return time_of(shapes, filled, most, sizes, gradients=gradients) < by_rows


def time_of(
    shapes: Shapes, filled: int, most: int, sizes: row_times.RowSizes, *, gradients: bool = False
) -> float:
    """Return the estimated time of tiles or of their gradients in microseconds; see :func:`pays`.

    Panels of columns are assumed to be as uneven as panels of rows.
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
    """Return the columns of the kernel for operands with ``k`` and ``p`` columns."""
    return next(width for width in WIDTHS if width >= max(k, p))
