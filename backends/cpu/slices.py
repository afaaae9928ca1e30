"""Estimate the speedup of CPU products from a sliced (SELL) copy of a matrix."""

from __future__ import annotations

from typing import NamedTuple

from ...core.devices import named
from ...core.statistics import RowStatistics


class SellConstants(NamedTuple):
    """Constants of the cost model for sliced copies.

    The model ignores the speed of memory, which statistics of rows do not predict.

    Attributes
    ----------
    row_end : float
        Cost of the end of a row in row-by-row summation, in units of the cost of an entry: the end
        of a row is a branch that processors mispredict where lengths vary.
    sliced_entry, sliced_row_end : float
        The cost of an entry in slices, and the additional cost of a row.
    row_end_of_one : float
        Row-end cost where the standard deviation of row lengths is 1; the cost approaches twice
        this value, at most ``row_end``, as the deviation grows. Branch predictors foresee most row
        ends at smaller deviations.
    single_row_end, single_sliced_entry, single_sliced_row_end, single_row_end_of_one : float
        The same for float32 values, of which a register holds twice the number.
    known_rows : int
        Consider a copy for any deviation from this number of rows on: no branch predictor
        remembers the length of each row.
    deviation, deviation_serial : float
        With fewer rows, consider a copy if the standard deviation of row lengths exceeds this
        fraction of their mean. ``deviation_serial`` applies if one thread multiplies and its cache
        holds the matrix.
    few : int
        Make no copy of matrices with fewer entries.
    """

    row_end: float
    sliced_entry: float
    sliced_row_end: float
    row_end_of_one: float
    single_row_end: float
    single_sliced_entry: float
    single_sliced_row_end: float
    single_row_end_of_one: float
    known_rows: int
    deviation: float
    deviation_serial: float
    few: int


#: The constants of processors without a data file of their own.
SELL = named("unknown-cpu").of(SellConstants)


def gain(statistics: RowStatistics, rules: SellConstants = SELL, dtype: str = "float64") -> float:
    """Return the expected speedup of slices over row-by-row products where row lengths vary.

    Parameters
    ----------
    statistics : RowStatistics
        The statistics of the matrix.
    rules : SellConstants
        The constants of the processor.
    dtype : str
        The dtype of the values.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> rows = RowStatistics(10_000, 10_000, 80_000, 8.0, 8.0, 90, 0.0)
    >>> [round(gain(rows._replace(mean=mean)), 1) for mean in (8.0, 25.0, 100.0)]
    [1.6, 1.2, 1.0]
    """
    s = statistics
    most, entry, end, of_one = rules[4:8] if dtype == "float32" else rules[:4]
    row_end = min(most, 2 * of_one * s.deviation / (s.deviation + 1))
    return (s.mean + row_end) / (entry * s.mean + end)
