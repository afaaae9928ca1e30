"""What products gain on CPUs from a copy in slices, whose rows of like length advance together."""

from __future__ import annotations

from ...core.statistics import RowStatistics

#: What a row costs beside its entries, in entries added up row by row: its end is a branch that no
#: processor foresees where lengths vary. In slices: an entry, and a row beside its entries.
#:
#: Fitted to rows of lognormal length (deviation / mean 0.4 and 1.3, near columns and any, 0.3 M
#: entries, float64, one thread of an EPYC with AVX2, 2026-11), time by rows over slices: 4 a
#: row 1.46 to 1.94, 8 1.66, 14 1.31 to 1.54, 25 1.10 to 1.18, 50 0.86 to 0.98, 100 0.7 to 1.0, 200
#: 0.8 to 0.9; R-MAT of 15 entries a row 1.47, of 61 and 92 0.94 to 1.07. With two threads R-MAT of
#: 15 gained 1.4 to 1.5 on omp, and 1.31 on SYCL's CPU device.
#:
#: Of matrices from memory that is what a quiet machine gains. Where others use the memory, threads
#: wait for bytes, of which slices have no fewer: two threads, 3 M entries, 8 to 100 a row, 0.6 to
#: 1.0, R-MAT of 4 M 1.0 to 1.2. Statistics do not tell how fast memory is: the rule ignores it.
ROW_END, SLICED_ENTRY, SLICED_ROW_END = 20.0, 1.18, 7.8

#: What the end of a row costs at most where lengths deviate by one entry, and twice that by many:
#: the end of a row whose length differs by less is mostly foreseen. Two threads of a Zen 4
#: (2026-11), normal lengths, 1.6 M entries near the diagonal and 6 M anywhere, time by rows over
#: slices and, in parentheses, expected: 5 a row deviating by 0.3 0.8, 0.8 (0.8), by 1.0 2.0, 1.4
#: (1.3); 10 by 1.1 1.5, 1.1 (1.15), by 2 1.7, 1.3 (1.3); 16 by 3.2 1.8, 1.3 (1.3); 25 by 4.8 1.5,
#: 1.1 (1.2); 40 by 7.7 1.3, 1.05 (1.1).
ROW_END_OF_ONE = 12.0

#: Rows from which no processor knows by heart how long each is. A thread of a Zen 4 knows some
#: 12,000: products by rows of fewer took 0.75 to 0.85 of the time of slices whatever the lengths,
#: and half of it or less from 18,000 on.
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
