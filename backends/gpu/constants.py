"""The constants of the rules that select kernels on GPUs.

:mod:`wollemi.core.devices` has the values.
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.devices import named


class SpmvConstants(NamedTuple):
    """The constants of the rules for products with vectors.

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
    launch : float
        Microseconds of a launch that does next to nothing.
    slack : float
        Microseconds that the longest row of a packed copy may always be waited for.
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
    """The constants of the rules for products of a sparse and a dense matrix by rows or entries.

    Attributes
    ----------
    sampled_piece, summed_piece : int
        Entries of a piece of a cut row, for samples and for sums of large matrices.
    summed_pieces : dict
        Entries of a piece for sums, by the entries of the matrix from which it holds: short ones
        where there would be too few.
    pieced_columns : int
        Columns from which ``summed_pieces`` holds.
    long : int
        Entries below which no row is cut.
    fair_shares : float
        Rows are cut where the longest has more entries than this many fair shares of a wave: it
        would still run when all others are done.
    most_team, uneven_team, uneven : int, int, float
        Waves that have a row together, at most, and at least where the longest row has more than
        ``uneven`` times as many entries as the average.
    most_steps : int
        Steps, in vectors that a lane has in flight, by which a team may take longer than segments
        of rows: the time of their final sum.
    scanned_columns : int
        Columns up to which a scan over the segments of a wave costs less than it saves.
    kept_columns : int
        Columns up to which that is so where rows are alike.
    wide_columns : int
        Columns from which a wave has no more than one row at a time.
    few : int
        Entries up to which groups of lanes have too few shares.
    many : int
        Entries from which shares for groups of lanes grow, and are better for wide rows than rows
        of their own.
    short : float
        Entries of a row on average up to which groups of lanes have rows of their own.
    unlike : float
        How many times as long as the average a row may be for that: a wave stays until the longest
        of its rows is done.
    group_chunks, wave_chunks : dict
        Entries of a chunk of a group of lanes, and of a wave, by the entries of the matrix from
        which it holds: there should be chunks for all waves.
    flat_bytes : int
        Bytes of a row of ``C`` up to which it pays to load it for every entry.
    flat_few_bytes, flat_short : int, float
        Bytes up to which it pays though no row is long, and entries of a row up to which it does.
    launch, step, round, cut : float
        Microseconds of sums: of a launch; of a step of a wave; of each time that all waves of the
        device are filled; of cutting rows.
    megabyte, differing : float
        Of megabytes of rows of the dense operand, and the addition if rows differ by their average.
    entries : float
        Of a million entries, for each tile of columns.
    widening : float
        The factor of 16-bit numbers, which are widened.
    large : dict
        Of large matrices, for every entry, and for every column of it, by the bytes of an element.
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


#: The constants of NVIDIA GPUs without a file of their own, for rules that are asked without a GPU.
SPMV = named("unknown-nvidia").of(SpmvConstants)
ROW_PRODUCTS = named("unknown-nvidia").of(RowProductConstants)
