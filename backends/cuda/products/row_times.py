"""Estimated times of 16-bit attention by rows, the baseline of the other algorithms."""

from __future__ import annotations

from typing import NamedTuple

from .constants import ROW_ATTENTION, RowAttentionConstants

#: Values per vector; the lanes of a row have a power of 2 of vectors.
OF_VECTOR = 8
#: A number of heads that fills a device.
MANY = 64


class RowSizes(NamedTuple):
    """The sizes of a product or of its gradients.

    Attributes
    ----------
    m, n, entries, batch, k, p : int
        Sizes and entries of the pattern, heads, and columns of ``C`` and ``D``.
    """

    m: int
    n: int
    entries: int
    batch: int
    k: int
    p: int


def time_of(
    sizes: RowSizes,
    rules: RowAttentionConstants = ROW_ATTENTION,
    *,
    gradients: bool = False,
    same: bool = False,
) -> float:
    """Return the estimated time of the row kernels in microseconds.

    Parameters
    ----------
    sizes : RowSizes
        The sizes of the product.
    rules : RowAttentionConstants
        The constants of the device.
    gradients : bool
        Estimate the gradients instead of the product.
    same : bool
        Whether ``D`` is ``B``.

    Examples
    --------
    >>> many = RowSizes(4096, 4096, 167_772, 16, 64, 64)  # measured: 128 and 253
    >>> round(time_of(many)), round(time_of(many, gradients=True))
    (126, 252)
    """
    columns = max(sizes.k, sizes.p)
    filled = OF_VECTOR
    while filled < columns:
        filled *= 2
    entries = float(sizes.entries * sizes.batch * filled)
    if gradients:
        entries *= rules.broken_gradients if filled != columns else 1.0
        of_row = rules.gradient_row + rules.gradient_row_column * columns
        rows = (sizes.m + sizes.n) / 2 * sizes.batch
        return rules.launch + entries * rules.gradient_column + rows * of_row
    entries *= (rules.broken if filled != columns else 1.0) / (rules.same if same else 1.0)
    return rules.launch + entries * rules.entry_column + sizes.m * sizes.batch * rules.row
