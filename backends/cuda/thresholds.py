"""The numbers of the selection rules that depend on whose GPU it is: a table for each vendor."""

from __future__ import annotations

from typing import NamedTuple


class Thresholds(NamedTuple):
    """What the rules of :mod:`.selection` and of products compare with.

    Attributes
    ----------
    most_padding : float
        Packed entries per entry that a packed copy may have: it moves that much more than CSR.
    few_entries : int
        Entries below which launches cost more than bytes, and a plan more than it brings.
    stream_entries : float
        Mean entries of a row up to which CSR-stream is right.
    uneven, many : float, int
        A row this many times the mean, and of at least this many entries, starves those beside it.
    short : int
        Entries of a row that a single lane can do without being waited for long.
    hot_share, hot_entries, hot_bytes : float, int, int
        Share of the entries that hot columns must have to pay for sorting x, the entries from which
        that is looked at, and the bytes of shared memory for them.
    small_entries : int
        Entries up to which caches hold all, so that a product waits for single loads: then lanes
        are shared out to make the longest row short.
    step, fill, threads : float, float, int
        Microseconds of one more entry of a lane, and of as many work-items as ``threads``, which
        the device holds at once.
    sell_step, sell_most, balanced : float, int, float
        Microseconds of one more load of ``sell_most`` entries of the packed kernels, and all of the
        balanced one's launches, above what a launch of any kernel takes.
    dense_columns : int
        Vectors up to which a wave a row of a dense matrix reads it from the caches often enough.
    """

    most_padding: float
    few_entries: int
    stream_entries: float
    uneven: float
    many: int
    short: int
    hot_share: float
    hot_entries: int
    hot_bytes: int
    small_entries: int
    step: float
    fill: float
    threads: int
    sell_step: float
    sell_most: int
    balanced: float
    dense_columns: int


#: Measured on an H200.
NVIDIA = Thresholds(
    # CSR-stream reaches 92 % of copy bandwidth on a 7-point stencil: more padding is no gain.
    most_padding=1.15,
    few_entries=20_000,
    # Rows a block of CSR-stream holds in shared memory: 8 entries for each of its items.
    stream_entries=8.0,
    uneven=8.0,
    many=256,
    # With a quarter of an entry a row that took 335 microseconds, cut and sorted rows 367 and
    # cuSPARSE 389 (20 M rows).
    short=16,
    # An R-MAT graph with 65 % gains 1.24 times (24,000 columns of float64), a circuit with 20 %
    # would lose.
    hot_share=0.4,
    hot_entries=4_000_000,
    # 24,000 float64. The rest of 228 KB is L1.
    hot_bytes=192_000,
    # Fitted to graph replays of 30 matrices of 4,000 to 4 M entries, all lanes of 1 to 32, the
    # packed and the balanced kernels. bcsstk13: 32 lanes 3.0, packed 11.7, 4 lanes 6.9; memplus (a
    # row of 574): 16 lanes 5.2, balanced 10.4, 4 lanes 12.7; a 7-point stencil 24^3: packed 2.1, 8
    # lanes 2.5; R-MAT 2^16 (a row of 5,495): balanced 15, 32 lanes 25.
    small_entries=2_000_000,
    step=0.07,
    fill=1.3,
    threads=270_336,
    sell_step=0.8,
    sell_most=8,
    balanced=11.0,
    dense_columns=2,
)
