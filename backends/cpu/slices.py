"""The gain of products on CPUs from a sliced copy of a matrix."""

from __future__ import annotations

from ...core.statistics import RowStatistics

#: The cost of a row, in entries added up row by row: the end of a row is a branch that processors
#: mispredict where lengths vary. In slices: the cost of an entry, and the additional cost of a row.
#:
#: Fitted to rows of lognormal length (deviation / mean 0.4 and 1.3, near columns and any, 0.3 M
#: entries, float64, one thread of an EPYC with AVX2, 2026-11), time by rows over slices: 4 a
#: row 1.46 to 1.94, 8 1.66, 14 1.31 to 1.54, 25 1.10 to 1.18, 50 0.86 to 0.98, 100 0.7 to 1.0, 200
#: 0.8 to 0.9; R-MAT of 15 entries a row 1.47, of 61 and 92 0.94 to 1.07. With two threads R-MAT of
#: 15 gained 1.4 to 1.5 on omp, and 1.31 on SYCL's CPU device.
#:
#: These are the gains for matrices from memory on an idle machine. On a shared machine threads wait
#: for memory traffic, which slices do not reduce, and the gain may vanish. Statistics do not tell
#: the speed of memory: the rule ignores it.
ROW_END, SLICED_ENTRY, SLICED_ROW_END = 20.0, 1.18, 7.8

#: The largest cost of the end of a row where lengths deviate by one entry, and twice that where
#: they deviate by many: branch predictors foresee most ends of rows with smaller deviations. Fitted
#: on two threads of a Zen 4 with normally distributed lengths of 5 to 40 entries.
ROW_END_OF_ONE = 12.0

#: The number of rows from which no branch predictor remembers the length of each. A Zen 4 thread
#: remembers some 12,000: below that, products by rows are faster than slices for all lengths.
KNOWN_ROWS = 1 << 16


def gain(statistics: RowStatistics) -> float:
    """Return how many times as fast slices are expected to be where lengths of rows vary.

    Examples
    --------
    >>> from wollemi.core.statistics import RowStatistics
    >>> rows = RowStatistics(10_000, 10_000, 80_000, 8.0, 8.0, 90, 0.0)
    >>> [round(gain(rows._replace(mean=mean)), 1) for mean in (8.0, 25.0, 100.0)]
    [1.6, 1.2, 1.0]
    """
    s = statistics
    row_end = min(ROW_END, 2 * ROW_END_OF_ONE * s.deviation / (s.deviation + 1))
    return (s.mean + row_end) / (SLICED_ENTRY * s.mean + SLICED_ROW_END)
