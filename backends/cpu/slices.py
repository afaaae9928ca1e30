"""The gain of products on CPUs from a sliced copy of a matrix."""

from __future__ import annotations

from typing import NamedTuple

from ...core.devices import named
from ...core.statistics import RowStatistics


class SellConstants(NamedTuple):
    """The constants of the rule for sliced copies.

    Statistics of rows do not tell the speed of memory: the rule ignores it.

    Attributes
    ----------
    row_end : float
        The cost of a row, in entries added up row by row: the end of a row is a branch that
        processors mispredict where lengths vary.
    sliced_entry, sliced_row_end : float
        In slices: the cost of an entry, and the additional cost of a row.
    row_end_of_one : float
        The largest cost of the end of a row where lengths deviate by one entry, and twice that
        where they deviate by many: branch predictors foresee most ends of rows with smaller
        deviations.
    single_row_end, single_sliced_entry, single_sliced_row_end, single_row_end_of_one : float
        The same for real values of single precision, of which registers hold twice the number.
    known_rows : int
        Rows from which no branch predictor remembers the length of each.
    deviation, deviation_serial : float
        Of the mean length: few rows that vary by more are worth a copy; the second is for a
        matrix that one thread multiplies with and that its cache holds.
    few : int
        Entries below which no copy is made.
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


#: The constants of processors without a file of their own.
SELL = named("unknown-cpu").of(SellConstants)


def gain(statistics: RowStatistics, rules: SellConstants = SELL, dtype: str = "float64") -> float:
    """Return how many times as fast slices are expected to be where lengths of rows vary.

    Parameters
    ----------
    statistics : RowStatistics
        Of the matrix.
    rules : SellConstants
        Of the processor.
    dtype : str
        Of the values.

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
