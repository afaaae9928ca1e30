"""Which kernel multiplies a matrix, and how big grids are: pure functions."""

import numpy as np
import pytest

from wollemi.backends.gpu import launch, structure
from wollemi.backends.gpu.constants import SPMV, SpmvConstants
from wollemi.backends.gpu.spmv import selection
from wollemi.backends.gpu.spmv.selection import SpmvFacts
from wollemi.core.algorithm import LEAST_GAIN
from wollemi.core.devices import constants_of
from wollemi.core.statistics import RowStatistics

FREE_BYTES = 2**36
#: A device on which copies gain nothing, and lose the gain of fewer bytes.
SLOW = SPMV._replace(slices_gain=0.1, near_gain=0.1, long_gain=0.1)


def rows(count=1_000_000, mean=7.0, longest=7, empty=0.0, columns=None):
    columns = count if columns is None else columns
    return RowStatistics(count, columns, int(count * mean), mean, 0.1, longest, empty)


def facts(
    padding=1.01,
    patterns=0,
    reach=10**6,
    shared_share=0.0,
    free_bytes=FREE_BYTES,
    sorted_padding=None,
):
    smallest = padding if sorted_padding is None else sorted_padding
    return SpmvFacts(padding, smallest, patterns, reach, shared_share, 8, free_bytes, 8, 4)


@pytest.mark.parametrize(
    ("statistics", "known", "kernel"),
    [
        (rows(), facts(patterns=27), "sell-pattern"),
        (rows(), facts(reach=32767), "sell-near"),
        (rows(), facts(reach=32768), "stream"),
        (rows(count=500_000), facts(reach=32768), "sell"),
        (rows(count=500_000), facts(padding=3.0, sorted_padding=1.1), "sell"),
        (rows(), facts(free_bytes=10**6), "stream"),
        (rows(count=1000), facts(patterns=3), "subwarp"),
        (rows(count=17_758, mean=7.1, longest=574), facts(padding=9.0), "csr-adaptive"),
        (rows(count=65_536, mean=16.0, longest=5495), facts(padding=9.0), "csr-adaptive"),
        (rows(count=32_768), facts(patterns=27), "sell-pattern"),
        (rows(count=100, mean=60.0, longest=60), facts(), "subwarp"),
        (rows(mean=20.0, longest=50_000), facts(padding=9.0), "csr-adaptive"),
        (
            rows(mean=20.0, longest=50_000),
            facts(padding=9.0, shared_share=0.6),
            "row-segments-cached",
        ),
        (rows(mean=20.0, longest=50_000), facts(padding=9.0, shared_share=0.3), "csr-adaptive"),
        (
            rows(mean=1.0, longest=5000, empty=0.8),
            facts(padding=9.0, shared_share=0.6),
            "csr-adaptive",
        ),
        (rows(mean=0.25, longest=7, empty=0.78), facts(padding=4.0), "csr-adaptive"),
        (rows(count=10**7, mean=0.5, longest=7, empty=0.6), facts(padding=4.0), "csr-adaptive"),
        (rows(mean=2.0, longest=90, empty=0.6), facts(padding=4.0), "csr-adaptive"),
        (rows(mean=20.0, longest=60), facts(padding=1.4), "csr-adaptive"),
        (rows(mean=20.0, longest=60), facts(padding=1.4, free_bytes=10**8), "csr-adaptive"),
        (rows(mean=20.0, longest=60), facts(padding=1.4, free_bytes=10**6), "subwarp"),
        (rows(mean=7.0, longest=40), facts(padding=1.4), "stream"),
        (rows(count=300_000, mean=7.0, longest=40), facts(padding=1.4), "csr-adaptive"),
        (
            rows(count=586_250, mean=4.3, longest=159),
            facts(padding=9.0, sorted_padding=1.1),
            "csr-adaptive",
        ),
        (
            rows(count=375_000, mean=43.8, longest=189),
            facts(padding=1.1, reach=900),
            "csr-adaptive",
        ),
        (rows(count=32_000, mean=500.0, longest=500), facts(reach=499), "csr-adaptive"),
        (rows(count=32_000, mean=500.0, longest=500), facts(reach=31_000), "row-segments"),
        (rows(count=7_000, mean=500.0, longest=500), facts(reach=499), "csr-adaptive"),
        (rows(count=30_000, mean=333.0, longest=400), facts(), "row-segments"),
        (rows(count=100_000, mean=100.0, longest=140), facts(), "sell"),
        (rows(count=100_000, mean=64.0, longest=100), facts(), "sell"),
        (rows(count=600_000, mean=64.0, longest=100), facts(), "csr-adaptive"),
        (rows(count=81_000, mean=75.7, longest=81), facts(patterns=27), "sell-pattern"),
        (rows(count=600_000, mean=80.3, longest=81), facts(reach=900), "sell-near"),
    ],
)
def test_the_rule_names_the_kernel(statistics, known, kernel):
    choice = selection.choose(statistics, known)
    assert choice.kernel == kernel
    assert choice.reason


@pytest.mark.parametrize(
    ("statistics", "known", "kernel"),
    [
        (
            RowStatistics(262_144, 262_144, 4_000_000, 15.26, 99.4, 13_478, 0.425),  # R-MAT 2^18
            facts(padding=7.47, sorted_padding=9.9, reach=2**31, shared_share=0.826),
            "row-segments-cached",
        ),
        (
            RowStatistics(500_000, 500_000, 2_880_000, 5.76, 135.0, 47_635, 0.0),  # a circuit
            facts(padding=3.89, sorted_padding=9.9, reach=2**31),
            "csr-adaptive",
        ),
        (
            RowStatistics(500_000, 500_000, 5_000_000, 10.0, 3.17, 28, 0.0),  # at random
            facts(padding=1.71, sorted_padding=1.03, reach=499_872),
            "csr-adaptive",
        ),
    ],
)
def test_the_rule_with_the_constants_of_an_h200(statistics, known, kernel):
    rules = constants_of("nvidia", "NVIDIA H200").of(SpmvConstants)
    assert selection.choose(statistics, known, rules).kernel == kernel


@pytest.mark.parametrize(
    ("kernel", "itemsize", "index_bytes", "keeps"),
    [
        ("sell-pattern", 4, 4, True),
        ("sell-pattern", 16, 4, True),
        ("sell-near", 4, 4, True),
        ("sell-near", 8, 4, True),
        ("sell-near", 16, 4, True),
        ("sell", 4, 4, False),
        ("sell", 8, 8, True),
        ("row-segments", 8, 4, False),
        ("row-segments", 8, 8, True),
        ("row-segments-cached", 8, 4, True),
    ],
)
def test_a_copy_has_to_gain_a_fifth(kernel, itemsize, index_bytes, keeps):
    known = facts()._replace(itemsize=itemsize, stored_bytes=itemsize, index_bytes=index_bytes)
    stencil = rows(count=2_000_000, mean=26.6, longest=27)
    gained = selection.gain(kernel, stencil, known)
    assert (gained >= LEAST_GAIN) is keeps
    assert selection.pays(kernel, stencil, known) is keeps
    assert selection.pays(kernel, rows(count=100_000, mean=26.6, longest=27), known)


def test_a_small_copy_need_not_gain():
    known = facts()._replace(itemsize=4, stored_bytes=2, index_bytes=8)
    stencil = rows(count=2_000_000, mean=600.0, longest=700)
    assert selection.gain("sell-pattern", stencil, known, SLOW) < LEAST_GAIN
    assert selection.pays("sell-pattern", stencil, known, SLOW)
    assert not selection.pays("sell-near", stencil, known, SLOW)


def test_the_reason_says_what_a_copy_would_gain():
    choice = selection.choose(rows(), facts())
    assert choice.kernel == "stream"
    assert "sell would gain 1.1" in choice.reason and "keep a copy" in choice.reason


@pytest.mark.parametrize("kernel", ["subwarp", "stream", "csr-adaptive", *selection.COLUMN_BYTES])
def test_a_kernel_takes_the_time_of_its_bytes(kernel):
    stencil, known = rows(count=2_000_000, mean=26.6, longest=27), facts()
    expected = selection.estimate(kernel, stencil, known)
    plain = selection.estimate("stream", stencil, known)
    memory = SPMV.launch + expected.nbytes / SPMV.bandwidth
    assert expected.nbytes <= plain.nbytes * 1.01
    if kernel in selection.COLUMN_BYTES:
        gained = selection.gain(kernel, stencil, known)
        waited = (plain.microseconds - SPMV.launch) / gained
        assert expected.microseconds == pytest.approx(SPMV.launch + waited)
    else:
        assert expected.microseconds == pytest.approx(memory)


def test_the_selected_kernel_has_the_least_estimate_of_small_matrices():
    few = rows(count=2003, mean=41.9, longest=95)
    times = {
        name: selection.estimate(name, few, facts()).microseconds
        for name in ("subwarp", "csr-adaptive", "sell")
    }
    assert min(times, key=times.get) == selection.choose(few, facts()).kernel == "subwarp"


def test_a_copy_with_unknown_padding_has_no_estimate():
    unknown = facts(padding=selection.UNKNOWN)
    assert selection.estimate("sell", rows(), unknown) is None
    assert selection.estimate("row-segments", rows(), unknown) is not None


def test_cached_columns_need_many_entries():
    few = rows(count=100_000, mean=20.0, longest=50_000)
    assert selection.choose(few, facts(padding=9.0, shared_share=0.9)).kernel == "csr-adaptive"


@pytest.mark.parametrize(
    ("longest", "columns", "alone"),
    [(289_063, 1, True), (289_063, 4, True), (289_063, 19, True), (60, 1, False), (60, 8, False)],
)
def test_several_vectors_go_one_by_one_where_a_row_is_long(longest, columns, alone):
    assert selection.one_by_one(rows(373_376, 8.9, longest), columns) is alone


@pytest.mark.parametrize(
    ("statistics", "free_bytes", "kernel"),
    [
        (rows(), FREE_BYTES, "stream"),
        (rows(count=373_376, mean=8.9, longest=289_063), FREE_BYTES, "csr-adaptive"),
        (rows(count=373_376, mean=8.9, longest=289_063), 10**6, "subwarp"),
        (rows(count=1000), FREE_BYTES, "subwarp"),
    ],
)
def test_what_is_not_packed(statistics, free_bytes, kernel):
    assert selection.unpacked(statistics, free_bytes).kernel == kernel


@pytest.mark.parametrize(
    ("mean", "lanes"), [(0.0, 1), (2.0, 1), (3.0, 2), (7.0, 4), (27.0, 16), (81.0, 32), (1e6, 32)]
)
def test_lanes_grow_with_the_rows(mean, lanes):
    assert selection.lanes_of(mean) == lanes
    assert selection.lanes(rows(count=10**8, mean=max(mean, 0.1))) == lanes


@pytest.mark.parametrize(
    ("count", "mean", "longest", "lanes"),
    [(2003, 41.9, 95, 32), (17_758, 7.1, 574, 16), (110_592, 6.9, 7, 1), (16_384, 73.2, 80, 8)],
)
def test_lanes_of_small_matrices_make_the_longest_row_short(count, mean, longest, lanes):
    assert selection.lanes(rows(count, mean, longest)) == lanes


def test_a_matrix_without_rows_has_lanes():
    assert selection.lanes(rows(count=0, mean=0.0, longest=0)) >= 1


def test_a_packed_copy_is_budgeted_with_its_columns_and_lists():
    statistics = rows()
    needed = selection.needs(statistics, facts(padding=1.0))
    assert needed == statistics.nnz * 12 + 40 * statistics.rows


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 257, 10**6, 3 * 10**9])
def test_grids_for_one_column_cover_the_rows_or_take_all_blocks(rows):
    grid = launch.map_grid(rows, 1, 1056)
    assert 1 <= grid.blocks <= 1056
    assert grid.blocks == 1056 or grid.blocks * launch.BLOCK >= rows
    assert grid.scratch == grid.blocks * 32


@pytest.mark.parametrize("columns", [2, 3, 8, 255, 256, 257, 1000])
@pytest.mark.parametrize("rows", [0, 1, 1000, 10**7])
def test_grids_for_many_columns_are_whole_rows_of_tiles(rows, columns):
    grid = launch.map_grid(rows, columns, 1056)
    across = -(-columns // launch.tile_width(columns))
    groups = launch.tile_groups(columns, grid.blocks)
    assert grid.blocks == across * groups
    assert grid.scratch == groups * columns * 32


def test_a_grid_never_exceeds_what_can_be_launched():
    assert launch.row_blocks(10**13) == 2**31 - 1
    assert launch.row_blocks(0) == 1


def test_products_are_expanded_in_pieces_that_fit():
    before = np.array([0, 10, 10, 35, 36, 50])
    ranges = structure.chunks(before, most=20)
    assert ranges == [(0, 2), (2, 3), (3, 5)]  # the row of 25 stands alone
    assert structure.chunks(np.array([0]), most=20) == [(0, 0)]
