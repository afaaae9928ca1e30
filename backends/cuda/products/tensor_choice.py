"""When the tensor cores win, and how their work is split."""

from __future__ import annotations

from ....core.algorithm import Facts
from ...gpu.products import choice as ml_choice
from .tensor_kernels import tile_shape

# Estimates in microseconds, from products of 256 x 256 to 8192 x 8192 on an H200 (2026-11-21, graph
# replays) of 2 to 30 % with 32 to 256 columns; benchmarks/results/ml-h200.md has them.

#: Launches, bringing values of B and A to where they are read, the first steps, and the last sums;
#: and the cost of every position of a matrix for each panel of columns, which does not depend on
#: the number of entries.
PANEL = {
    "float32": {32: (11.2, 5.3e-7), 64: (12.0, 8.3e-7), 128: (12.2, 1.43e-6)},
    "float16": {32: (8.8, 3.4e-7), 64: (9.3, 4.0e-7), 128: (11.5, 5.6e-7)},
}
#: Values of a step are read from shared memory by one lane each, with bank conflicts: a warp's
#: loads of a step take TURNS turns without an entry, TURNS_OF_ALL with all positions (simulated),
#: and a position costs TURN seconds a turn. Below a quarter of the positions something else takes
#: longer: 64: 27.1 and 39.4; 128: 37.1 and 46.9.
TURNS, TURNS_OF_ALL, TURN = 22, 127, 8.0e-9
#: By how much they have to be faster.
MARGIN = 1.05


def shares(tiles: int, steps: int, multiprocessors: int) -> int:
    """Return how many blocks of threads share the steps of all tiles.

    Examples
    --------
    >>> shares(64, 128, 132)
    128
    >>> shares(43, 128, 132), shares(100, 128, 132), shares(1, 2, 132)
    (129, 132, 2)
    """
    whole = tiles * max(1, multiprocessors // tiles)
    # Shares that end where tiles end leave fewer parts to be added up.
    if whole <= multiprocessors < whole * 1.07:
        return min(whole, tiles * steps)
    return min(multiprocessors, tiles * steps)


def with_tensor_cores(facts: Facts) -> float:
    """Return how many microseconds tensor cores should take."""
    kind = "float32" if facts.dtype == "float32" else "float16"
    width = tile_shape(facts.dtype, facts.columns).columns
    panels = -(-facts.columns // width)
    launches, place = PANEL[kind][width]
    turns = TURNS + (TURNS_OF_ALL - TURNS) * facts.density
    place += max(0.0, TURN * turns - PANEL[kind][min(PANEL[kind])][1])
    return launches + place * facts.statistics.rows * facts.statistics.columns * panels


def reason(facts: Facts, waves: int) -> str | None:
    """Return why tensor cores are the right choice, or None.

    Parameters
    ----------
    facts : Facts
        Of the product.
    waves : int
        That the device holds.

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
    mine = with_tensor_cores(facts)
    others = ml_choice.estimate(facts.statistics, waves, facts.columns, facts.itemsize)
    if mine * MARGIN > others:
        return None
    return (
        f"with {facts.density:.1%} of the entries tensor cores should take {mine:.0f} "
        f"microseconds and rows one by one {others:.0f}"
    )
