"""Launch shapes of the kernels of attention by tiles, their estimated times, and when they pay."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

from . import row_times
from .tile_pattern import COLUMNS, ROWS

#: Columns of dense operands that there are kernels for.
WIDTHS = (32, 64, 128)
#: How many times as long tiles take if rows are not copied 16 bytes at a time: 129 for 4 columns.
NOT_WHOLE = 1.5
#: Microseconds of a launch.
LAUNCH = 2.0


class Shape(NamedTuple):
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
    """The shapes of the three kernels, for up to a number of columns.

    Attributes
    ----------
    kernels : dict
        By the name of the kernel and by columns: for the product, the gradients of ``C``, and the
        gradients of ``B`` and ``D``.
    in_turn, together : dict
        Microseconds of a tile of the product, by columns: of one block, which has its tiles one
        after the other, and of all that a device holds.
    gradients : dict
        The time of gradients relative to the product, by columns: for ``C``, and for ``B`` and
        ``D``, which have panels of columns as blocks.
    warpgroups : bool
        Whether products are asked for by warpgroups, with the instructions of Hopper.
    """

    kernels: dict[str, dict[int, Shape]]
    in_turn: dict[int, float]
    together: dict[int, float]
    gradients: dict[int, tuple[float, float]]
    warpgroups: bool = False


#: By warps. H200, 4096 x 4096, 64 tiles a panel, one head and eight: 88 and 118 microseconds for
#: 32 columns, 106 and 146 for 64, 159 and 231 for 128.
WARPS = Shapes(
    {
        "tile_attention": {32: Shape(2), 64: Shape(2), 128: Shape(2)},
        "tile_row_gradients": {32: Shape(1), 64: Shape(1), 128: Shape(2, 32, 1)},
        "tile_column_gradients": {
            32: Shape(2, 32),
            64: Shape(2, 32),
            128: Shape(1, resident=1),
        },
    },
    in_turn={32: 1.38, 64: 1.65, 128: 2.48},
    together={32: 0.0072, 64: 0.0089, 128: 0.0141},
    gradients={32: (1.15, 1.65), 64: (1.15, 1.65), 128: (1.45, 2.05)},
)
#: By warpgroups. The same on an H100: 72 and 108, 85 and 130, 111 and 183; gradients for eight
#: heads 314 for 64 columns, 521 for 128. Gradients of 16384 x 1024 and of 1024 x 16384, 4 and 16
#: heads of 64: 529 and 687.
WARPGROUPS = Shapes(
    {
        "tile_attention": {32: Shape(1), 64: Shape(1), 128: Shape(1)},
        "tile_row_gradients": {32: Shape(1), 64: Shape(1), 128: Shape(1, 32, 1)},
        "tile_column_gradients": {
            32: Shape(1, 32),
            64: Shape(1, 32),
            128: Shape(1, resident=1),
        },
    },
    in_turn={32: 1.09, 64: 1.29, 128: 1.70},
    together={32: 0.0065, 64: 0.0078, 128: 0.0110},
    gradients={32: (0.9, 1.27), 64: (1.0, 1.4), 128: (1.2, 1.7)},
    warpgroups=True,
)


def shapes_for(device: Any) -> Shapes:
    """Return the shapes of the kernels that a device runs."""
    return WARPGROUPS if device.capability == (9, 0) else WARPS


def pays(
    shapes: Shapes, filled: int, most: int, sizes: row_times.Sizes, *, gradients: bool = False
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
    gradients : bool
        Whether gradients are asked for.
    """
    sizes = sizes._replace(p=min(sizes.p, WIDTHS[-1]))
    by_rows = row_times.time_of(sizes, gradients=gradients)
    return time_of(shapes, filled, most, sizes, gradients=gradients) < by_rows


def time_of(
    shapes: Shapes, filled: int, most: int, sizes: row_times.Sizes, *, gradients: bool = False
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
    return LAUNCH + tiles * (1 if k % 8 == 0 and p % 8 == 0 else NOT_WHOLE)


def width_of(k: int, p: int) -> int:
    """Return the columns that a kernel is made for."""
    return next(width for width in WIDTHS if width >= max(k, p))
