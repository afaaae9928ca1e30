"""Decide when tensor cores are faster, and how many blocks share their work."""

from __future__ import annotations

from ....core.algorithm import Facts
from ...gpu.constants import ROW_PRODUCTS, RowProductConstants
from ...gpu.products import choice as product_choice
from .constants import TENSOR_CORES, TensorCoreConstants
from .tensor_kernels import tile_shape


def shares(tiles: int, steps: int, multiprocessors: int) -> int:
    """Return the number of blocks that share the steps of all tiles.

    Examples
    --------
    >>> shares(64, 128, 132)
    128
    >>> shares(43, 128, 132), shares(100, 128, 132), shares(1, 2, 132)
    (129, 132, 2)
    """
    whole = tiles * max(1, multiprocessors // tiles)
    # Blocks that end at tile ends leave fewer partial sums to add up.
    if whole <= multiprocessors < whole * 1.07:
        return min(whole, tiles * steps)
    return min(multiprocessors, tiles * steps)


def with_tensor_cores(facts: Facts, rules: TensorCoreConstants = TENSOR_CORES) -> float:
    """Return the estimated time on tensor cores in microseconds."""
    kind = "float32" if facts.dtype == "float32" else "float16"
    width = tile_shape(facts.dtype, facts.columns).columns
    panels = -(-facts.columns // width)
    launches, place = rules.panel[kind][width]
    turns = rules.turns + (rules.turns_of_all - rules.turns) * facts.density
    place += max(0.0, rules.turn * turns - rules.panel[kind][min(rules.panel[kind])][1])
    return launches + place * facts.statistics.rows * facts.statistics.columns * panels


def reason(
    facts: Facts,
    waves: int,
    rules: TensorCoreConstants = TENSOR_CORES,
    by_rows: RowProductConstants = ROW_PRODUCTS,
) -> str | None:
    """Return why tensor cores are the right choice, or None.

    Parameters
    ----------
    facts : Facts
        The facts of the product.
    waves : int
        Waves that the device can hold.
    rules, by_rows : TensorCoreConstants, RowProductConstants
        The constants of the device.

    Examples
    --------
    >>> import numpy as np
    >>> from wollemi.core.statistics import RowStatistics
    >>> def weights(density, columns):
    ...     nnz = int(density * 8192**2)
    ...     rows = RowStatistics(8192, 8192, nnz, density * 8192, 27.0, 930, 0.0)
    ...     return Facts(rows, columns, "float32", np.dtype(np.int32))
    >>> print(reason(weights(0.3, 128), 8448))
    with 30.0% of the entries tensor cores should take 108 microseconds and rows one by one 554
    >>> reason(weights(0.02, 128), 8448) is None
    True
    """
    mine = with_tensor_cores(facts, rules)
    others = product_choice.estimate(
        facts.statistics, waves, facts.columns, facts.itemsize, by_rows
    )
    if mine * rules.margin > others:
        return None
    return (
        f"with {facts.density:.1%} of the entries tensor cores should take {mine:.0f} "
        f"microseconds and rows one by one {others:.0f}"
    )
