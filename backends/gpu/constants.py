"""Constants of the rules that select kernels on GPUs.

:mod:`wollemi.core.devices` has the values.
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.devices import named


class SpmvConstants(NamedTuple):
    """Constants of the rules for matrix-vector products.

    Attributes
    ----------
    most_padding : float
        Upper bound of packed entries (including padding) per entry of a packed copy: the copy moves
        more data than CSR by this factor.
    few_entries : int
        With fewer entries, launches cost more than memory traffic, and plans do not pay.
    stream_entries : float
        Choose CSR-stream only if rows have at most this many entries on average.
    uneven, many : float, int
        A row with more than ``uneven`` times the mean, and more than ``many`` entries, delays
        adjacent rows.
    shared_share, shared_entries, shared_mean, shared_bytes : float, int, float, int
        Conditions for cached columns: the fraction of entries in the cached columns for which
        sorting x pays; the minimum number of entries, and of entries per column, to consider it;
        and the shared memory in bytes for the columns.
    sorted_entries, sorted_mean, sorted_long : int, float, float
        Conditions for sorted pieces of rows: from this number of entries and of entries per row on,
        they find more of x in the caches than row blocks in order; from ``sorted_long`` entries per
        row on, fewer entries suffice.
    near_bytes : int
        Row blocks in order find x in the first-level cache if at most this many bytes of x around
        the diagonal are used: pieces of rows then gain nothing.
    cached_entries : int
        From this number of entries on, the matrix is read from memory.
    small_entries : int
        Up to this number of entries, caches hold everything, so the latency of single loads
        determines the time: lanes are then assigned such that the longest row becomes short.
    step, fill, threads : float, float, int
        Microseconds per additional entry of a lane (``step``), and per additional ``threads``
        work-items (``fill``), which is the number that the device holds at once.
    sell_step, sell_most : float, int
        Microseconds per additional load of ``sell_most`` entries in the packed kernels.
    sell_wait, sell_byte : float, float
        The same for matrices in memory, and the additional time per byte of a value.
    most_loading : float
        Upper bound of the time in which a lane of the packed kernels loads its row, relative to the
        time of the matrix's bytes.
    adaptive_launch, adaptive_entry : float, float
        If caches hold everything: microseconds of CSR-Adaptive above any kernel's launch, and per
        entry.
    bandwidth : float
        Bytes of a matrix that are read from memory per microsecond.
    most_waiting : float
        Upper bound of the wait for the longest row, as a fraction of the time of the matrix's
        bytes.
    wait : float
        Microseconds per additional entry of a lane that is read from memory.
    slices_gain, near_gain, segments_gain, cached_gain : float
        For matrices in memory: speedup of packed copies over the best kernel on the arrays, beyond
        the ratio of bytes. For slices of rows, slices with 16-bit columns, segments of rows, and
        segments with cached columns.
    long_slices, slices_bytes, long_slices_gain, long_gain : float, int, float, float
        From ``long_slices`` entries per row on, if rows use at most ``slices_bytes`` bytes of x,
        slices with 32-bit columns have the gain ``long_slices_gain``. From ``sorted_long`` entries
        per row on, segments have the gain ``long_gain``.
    dense_columns : int
        Up to this number of vectors, a dense product with one wave per row reuses the matrix from
        the caches often enough.
    launch : float
        Microseconds of a launch with hardly any work.
    slack : float
        Microseconds that a packed copy's longest row may always be waited for.
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
    launch: float
    slack: float


class RowProductConstants(NamedTuple):
    """Constants of the rules for products of a sparse and a dense matrix by rows or entries.

    Attributes
    ----------
    sampled_piece, summed_piece : int
        Entries per piece of a cut row: for samples, and for sums of large matrices.
    summed_pieces : dict
        Entries per piece for sums, by the matrix's number of entries from which they apply: pieces
        are short where there would otherwise be too few.
    pieced_columns : int
        From this number of columns on, ``summed_pieces`` applies.
    long : int
        Rows with fewer entries are never cut.
    fair_shares : float
        Cut rows if the longest has more entries than this many times a wave's fair share: its wave
        would still run when all others have finished.
    most_team, uneven_team, uneven : int, int, float
        Upper bound of waves per row, and lower bound if the longest row has more than ``uneven``
        times the average number of entries.
    most_steps : int
        A team may take this many more steps (of the vectors that a lane has in flight) than
        segments of rows: their final sum takes as long.
    scanned_columns : int
        Up to this number of columns, a scan over the segments of a wave costs less than it saves.
    kept_columns : int
        The same limit if row lengths are similar.
    wide_columns : int
        From this number of columns on, a wave has at most one row at a time.
    few : int
        Up to this number of entries, there are too few shares for groups of lanes.
    many : int
        From this number of entries on, shares of groups of lanes grow; for wide rows, they are then
        better than whole rows.
    short : float
        Groups of lanes get whole rows only if rows have at most this many entries on average.
    unlike : float
        Groups of lanes get whole rows only if the longest row is at most this many times the
        average: a wave takes as long as the longest of its rows.
    group_chunks, wave_chunks : dict
        Entries per chunk of a group of lanes, and of a wave, by the matrix's number of entries from
        which they apply: there should be chunks for all waves.
    flat_bytes : int
        Loading a row of ``C`` anew for every entry pays up to this number of bytes per row.
    flat_few_bytes, flat_short : int, float
        The same limit if no row is long, and the largest number of entries per row for it.
    launch, step, round, cut : float
        Microseconds of sums: per launch; per step of a wave; per filling of all waves of the
        device; for cutting rows.
    megabyte, differing : float
        Microseconds per megabyte of rows of the dense operand, and the addition if row lengths
        deviate by their mean.
    entries : float
        Microseconds per million entries and tile of columns.
    widening : float
        Time factor for 16-bit numbers, because they are widened.
    large : dict
        For large matrices, by the bytes of an element: microseconds per entry, and per entry and
        column.
    """

    sampled_piece: int
    summed_piece: int
    summed_pieces: dict[int, int]
    pieced_columns: int
    long: int
    fair_shares: float
    most_team: int
    uneven_team: int
    uneven: float
    most_steps: int
    scanned_columns: int
    kept_columns: int
    wide_columns: int
    few: int
    many: int
    short: float
    unlike: float
    group_chunks: dict[int, int]
    wave_chunks: dict[int, int]
    flat_bytes: int
    flat_few_bytes: int
    flat_short: float
    launch: float
    step: float
    round: float
    cut: float
    megabyte: float
    differing: float
    entries: float
    widening: float
    large: dict[int, tuple[float, float]]


#: The constants of NVIDIA GPUs without a data file, for rules that are evaluated without a GPU.
SPMV = named("unknown-nvidia").of(SpmvConstants)
ROW_PRODUCTS = named("unknown-nvidia").of(RowProductConstants)
