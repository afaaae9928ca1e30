"""Estimated times of 16-bit attention by rows, the baseline of the other algorithms."""

from __future__ import annotations

from typing import NamedTuple

#: Microseconds of a launch.
LAUNCH = 2.0
#: Microseconds of an entry for each column, and of a row: of the product, and of gradients by rows
#: and by columns, where a row costs more with more columns. H100, ``wollemi_bench.slab_table``:
#: within 10 % of 46 of 49 products and 43 of 49 gradients.
ENTRY_OF_COLUMN, ROW = 0.425e-6, 780e-6
GRADIENT_OF_COLUMN, GRADIENT_ROW, GRADIENT_ROW_OF_COLUMN = 0.97e-6, 960e-6, 4.8e-6
#: The factor on the time of an entry if its row does not fill the lanes that share it, a power of 2
#: of vectors of 8 values: the product, and gradients.
BROKEN, BROKEN_GRADIENTS = 1.45, 2.2
OF_VECTOR = 8
#: Heads that fill a device.
MANY = 64
#: How many times as fast the product is for each entry where ``D`` is ``B``.
SAME = 1.7


class Sizes(NamedTuple):
    """A product or its gradients.

    Attributes
    ----------
    m, n, entries, batch, k, p : int
        Of the pattern, heads, and columns of ``C`` and ``D``.
    """

    m: int
    n: int
    entries: int
    batch: int
    k: int
    p: int


def time_of(sizes: Sizes, *, gradients: bool = False, same: bool = False) -> float:
    """Return the microseconds of the kernels by rows.

    Parameters
    ----------
    sizes : Sizes
    gradients : bool
        Whether gradients are asked for.
    same : bool
        Whether ``D`` is ``B``.

    Examples
    --------
    >>> many = Sizes(4096, 4096, 167_772, 16, 64, 64)  # measured: 128 and 253
    >>> round(time_of(many)), round(time_of(many, gradients=True))
    (126, 252)
    """
    columns = max(sizes.k, sizes.p)
    filled = OF_VECTOR
    while filled < columns:
        filled *= 2
    entries = float(sizes.entries * sizes.batch * filled)
    if gradients:
        entries *= BROKEN_GRADIENTS if filled != columns else 1.0
        of_row = GRADIENT_ROW + GRADIENT_ROW_OF_COLUMN * columns
        rows = (sizes.m + sizes.n) / 2 * sizes.batch
        return LAUNCH + entries * GRADIENT_OF_COLUMN + rows * of_row
    entries *= (BROKEN if filled != columns else 1.0) / (SAME if same else 1.0)
    return LAUNCH + entries * ENTRY_OF_COLUMN + sizes.m * sizes.batch * ROW
