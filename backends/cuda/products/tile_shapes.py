"""How the kernels of attention by tiles are made, what they take, and when they pay."""

from __future__ import annotations

from typing import Any, NamedTuple

from .tile_pattern import COLUMNS

#: Columns of dense operands that there are kernels for.
WIDTHS = (32, 64, 128)
#: How many times as long tiles take if rows are not copied 16 bytes at a time: 129 for 4 columns.
NOT_WHOLE = 1.5
#: Microseconds of an entry by rows: 12, 19, 29 and 56 picoseconds for 16, 32, 64 and 128 columns.
ENTRY, ENTRY_OF_COLUMN = 7e-6, 0.41e-6
#: The same of gradients by rows and columns: 48, 90 and 172 picoseconds for 32, 64 and 128 columns
#: (H100, 4 % of 4096 x 4096).
GRADIENT_ENTRY, GRADIENT_OF_COLUMN = 6e-6, 1.3e-6
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
    """The shapes of the three kernels, for up to so many columns.

    Attributes
    ----------
    kernels : dict
        By the name of the kernel and by columns: of the product, of the gradients of ``C``, and
        of those of ``B`` and ``D``.
    in_turn, together : dict
        Microseconds of a tile of the product, by columns: of one block, which has its tiles one
        after the other, and of all that a device holds.
    gradients : dict
        How many times as long as the product gradients take, by columns.
    warpgroups : bool
        Whether products are asked for by warpgroups, with the instructions of Hopper.
    """

    kernels: dict[str, dict[int, Shape]]
    in_turn: dict[int, float]
    together: dict[int, float]
    gradients: dict[int, float]
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
    gradients={32: 2.8, 64: 2.8, 128: 3.5},
)
#: By warpgroups. The same on an H100: 72 and 108, 85 and 130, 111 and 183; gradients for eight
#: heads 314 for 64 columns, 521 for 128.
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
    gradients={32: 2.4, 64: 2.4, 128: 2.9},
    warpgroups=True,
)


def shapes_for(device: Any) -> Shapes:
    """Return the shapes of the kernels that a device runs."""
    return WARPGROUPS if device.capability == (9, 0) else WARPS


def pays(
    shapes: Shapes,
    filled: int,
    most: int,
    entries: int,
    batch: int,
    k: int,
    p: int,
    *,
    gradients: bool = False,
) -> bool:
    """Return whether tiles are faster than rows, or their gradients than those by rows.

    Parameters
    ----------
    shapes : Shapes
        Of the device's kernels.
    filled, most : int
        How many tiles there are, and how many the panel of most has.
    entries : int
        Of one block of the batch.
    batch, k, p : int
        Blocks, and columns of ``C`` and of ``D``.
    gradients : bool
        Whether gradients are asked for.
    """
    wider = max(k, min(p, WIDTHS[-1]))
    by_rows = entries * batch * (of_gradient(wider) if gradients else of_entry(wider))
    return time_of(shapes, filled, most, batch, k, p, gradients=gradients) < by_rows


def time_of(
    shapes: Shapes, filled: int, most: int, batch: int, k: int, p: int, *, gradients: bool = False
) -> float:
    """Return the microseconds of tiles, or of their gradients; see :func:`pays`."""
    width = width_of(k, min(p, WIDTHS[-1]))
    tiles = max(most * shapes.in_turn[width], filled * batch * shapes.together[width])
    tiles *= 1 if k % 8 == 0 and p % 8 == 0 else NOT_WHOLE
    return LAUNCH + tiles * (shapes.gradients[width] if gradients else 1)


def of_tiles(device: Any, columns: int) -> tuple[float, float]:
    """Return the microseconds of a tile on a full device, and of its gradients."""
    shapes, width = shapes_for(device), width_of(columns, 1)
    of_tile = shapes.together[width] * (NOT_WHOLE if columns % 8 else 1)
    return of_tile, of_tile * shapes.gradients[width]


def of_entry(columns: int) -> float:
    """Return the microseconds of an entry by rows."""
    return ENTRY + ENTRY_OF_COLUMN * columns


def of_gradient(columns: int) -> float:
    """Return the microseconds of an entry's gradients by rows and columns."""
    return GRADIENT_ENTRY + GRADIENT_OF_COLUMN * columns


def width_of(k: int, p: int) -> int:
    """Return the columns that a kernel is made for."""
    return next(width for width in WIDTHS if width >= max(k, p))
