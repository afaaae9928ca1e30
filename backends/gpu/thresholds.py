"""The constants of the selection rules that depend on the vendor: a table for each."""

from __future__ import annotations

from typing import NamedTuple


class Thresholds(NamedTuple):
    """The constants of the rules of :mod:`.selection` and of products.

    Attributes
    ----------
    most_padding : float
        Packed entries per entry that a packed copy may have: it moves that much more than CSR.
    few_entries : int
        Entries below which launches cost more than bytes, and a plan more than it brings.
    stream_entries : float
        Mean entries of a row up to which CSR-stream is right.
    uneven, many : float, int
        A row this many times the mean, and of at least this many entries, starves adjacent rows.
    shared_share, shared_entries, shared_mean, shared_bytes : float, int, float, int
        Share of the entries that cached columns must have to pay for sorting x, the entries and the
        entries a column from which that is looked at, and the bytes of shared memory for them.
    sorted_entries, sorted_mean, sorted_long : int, float, float
        Entries, and entries a row, from which pieces of rows that are sorted by length find more of
        x in the caches than row blocks in order; entries a row from which fewer entries do.
    near_bytes : int
        Bytes of x around the diagonal up to which row blocks in order find them in the first-level
        cache: pieces of rows then gain nothing.
    cached_entries : int
        Entries from which the matrix comes from memory.
    small_entries : int
        Entries up to which caches hold all, so that a product waits for single loads: then lanes
        are shared out to make the longest row short.
    step, fill, threads : float, float, int
        Microseconds of one more entry of a lane, and of as many work-items as ``threads``, which
        the device holds at once.
    sell_step, sell_most : float, int
        Microseconds of one more load of ``sell_most`` entries of the packed kernels.
    sell_wait, sell_byte : float, float
        The same for matrices from memory, and the addition for each byte of a value.
    most_loading : float
        How many times the time of a matrix's bytes a lane of the packed kernels may load its row.
    adaptive_launch, adaptive_entry : float, float
        Microseconds of CSR-Adaptive above a launch of any kernel, and of one more entry, where
        caches hold all.
    bandwidth : float
        Bytes of a matrix that come from memory in a microsecond.
    most_waiting : float
        Share of the time of a matrix's bytes that its longest row may be waited for.
    wait : float
        Microseconds of one more entry of a lane that comes from memory.
    slices_gain, near_gain, segments_gain, cached_gain : float
        The speed of packed copies of matrices from memory relative to the best kernel that reads
        the arrays, beyond the ratio of bytes: slices of rows, slices with 16-bit columns, segments
        of rows, and segments with cached columns.
    long_slices, slices_bytes, long_slices_gain, long_gain : float, int, float, float
        Entries a row from which slices with 32-bit columns gain more, bytes of x that rows may name
        for it, and this gain; the gain of segments from ``sorted_long`` entries a row on.
    dense_columns : int
        Vectors up to which a wave a row of a dense matrix reads it from the caches often enough.
    """

    most_padding: float
    few_entries: int
    stream_entries: float
    uneven: float
    many: int
    shared_share: float
    shared_entries: int
    shared_mean: float
    shared_bytes: int
    sorted_entries: int
    sorted_mean: float
    sorted_long: float
    near_bytes: int
    cached_entries: int
    small_entries: int
    step: float
    fill: float
    threads: int
    sell_step: float
    sell_wait: float
    sell_byte: float
    most_loading: float
    sell_most: int
    adaptive_launch: float
    adaptive_entry: float
    bandwidth: float
    most_waiting: float
    wait: float
    slices_gain: float
    near_gain: float
    segments_gain: float
    cached_gain: float
    long_slices: float
    slices_bytes: int
    long_slices_gain: float
    long_gain: float
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
    # An R-MAT graph with 65 % gains 1.24 times (24,000 columns of float64), a circuit with 20 %
    # would lose.
    shared_share=0.4,
    shared_entries=4_000_000,
    # R-MAT, float64: 22 and 15 entries a column gain (126 for 212 microseconds, 30 for 40), one
    # loses (101 for 66).
    shared_mean=8.0,
    # 24,000 float64. The rest of 228 KB is L1.
    shared_bytes=192_000,
    # Row segments and row blocks, float64: R-MAT 2^20 of 23 M entries 176 and 212 microseconds, a
    # power law of 47 M 392 and 399, tetrahedra of 16 M (44 a row) 52 and 57; a circuit of 8 M 72
    # and 65, one of 7 M (11 a row) 39 and 35, a block graph of 4 M (19 a row) 33 and 27.
    sorted_entries=10_000_000,
    sorted_mean=12.0,
    # 30,000 rows of 333 at random, 9.9 M entries: pieces 40, row blocks 79.
    sorted_long=100.0,
    # H100, dense blocks on the diagonal, pieces and row blocks, float64 and float32: 120 wide 35
    # and 27, 28 and 21; 500 wide 73 and 69, 53 and 50; 1000 wide 107 and 82, 75 and 61. 12,000
    # columns at random, 192,000 bytes of float64, 54 and 63.
    near_bytes=65_536,
    # 48 MB of an L2 of 60. Of a circuit of 2.5 M entries row blocks took 13.7, CSR-stream 15.0.
    cached_entries=4_000_000,
    # Fitted to graph replays of 30 matrices of 4,000 to 4 M entries, all lanes of 1 to 32, the
    # packed kernels and row blocks. bcsstk13: 32 lanes 2.7, row blocks 2.5, packed 11.7; memplus (a
    # row of 574): 16 lanes 5.2, row blocks 3.5; a 7-point stencil 24^3: packed 2.1, 8 lanes 2.5;
    # R-MAT 2^16 (a row of 5,431): 32 lanes 18, row blocks 11.
    small_entries=2_000_000,
    step=0.07,
    fill=1.3,
    threads=270_336,
    sell_step=0.8,
    # 32,000 rows of 500 entries: float64 132 microseconds, float32 99; 50,000 of 250: 71 and 54;
    # finite elements, 81,000 of 76: 20 and 15. Times that of the bytes: packed rows are best up to
    # 1.4 (30,000 rows of 333, at random: 3.2, 93 microseconds, pieces 40; 100,000 of 100: 1.1, 35,
    # pieces 49), pieces or row blocks from 1.9.
    sell_wait=1.25,
    sell_byte=0.115,
    most_loading=1.6,
    sell_most=8,
    adaptive_launch=1.9,
    adaptive_entry=5e-6,
    bandwidth=4.2e6,
    # Of a circuit of 2.5 M entries (a row of 159) slices took 46 and 32 microseconds, shares 14; of
    # tetrahedra of 16 M (a row of 189) 82 and 78, pieces 52. H100, float32, at random: 64 a row
    # (the longest 100) slices 29, shares 58; 80 (120) 33 and 71; 100 (149) 41 and 86.
    most_waiting=0.26,
    # The longest row of a circuit, 289,063 entries, took eight lanes 5,500 microseconds.
    wait=0.15,
    # Slices with 32-bit columns, which read as much as CSR: a 7-point stencil of 56 M entries 184
    # microseconds, CSR-stream 206; tetrahedra of 6.6 M 32.2, row blocks 33.8; 12 a row at random
    # 201, row blocks 202. With patterns 135 of 206, of which bytes are 1.42.
    slices_gain=1.08,
    # H100: bands of 20 a row, float64 1.16 and 1.21, float32 1.20 and 1.39, complex128 1.12 and
    # 1.31; of 57 a row 1.04 and 1.09.
    near_gain=1.12,
    # The values for ``sorted_entries``: 1.20 (R-MAT), 1.02 and 1.10.
    segments_gain=1.1,
    # R-MAT: 1.24 to 1.68, see ``shared_share`` and ``shared_mean``.
    cached_gain=1.3,
    # H100, at random, by bytes of x: 0.4 MB 2.0 (64 to 100 a row), 0.6 1.63 (150), 0.8 1.43 to 1.75
    # (40 to 100), 1.6 1.20 and 1.11 (60 and 40), 2.4 1.06 (60), 4.8 1.03 (60), 8 0.98 (12).
    long_slices=32.0,
    slices_bytes=1_200_000,
    long_slices_gain=1.5,
    # 30,000 rows of 333 at random: pieces 40, row blocks 79 (H200); 55 and 94 (H100).
    long_gain=1.9,
    dense_columns=2,
)
