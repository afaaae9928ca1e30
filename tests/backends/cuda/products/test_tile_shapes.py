"""When attention by tiles pays."""

from __future__ import annotations

from wollemi.backends.cuda.products import tile_shapes as attention
from wollemi.backends.cuda.products.row_times import RowSizes


def sizes(entries: int, batch: int, k: int) -> RowSizes:
    return RowSizes(4096, 4096, entries, batch, k, k)


def test_few_tiles_are_left_to_rows() -> None:
    entries, of_tiles = 503_000, (2048, 64)
    by_warps, by_groups = attention.WARPS, attention.WARPGROUPS
    # 3 %: measured, tiles and rows, 106 and 21, 146 and 136 microseconds
    assert not attention.pays(by_warps, *of_tiles, sizes(entries, 1, 64))
    assert not attention.pays(by_warps, *of_tiles, sizes(entries, 8, 16))  # 118 and 69
    assert attention.pays(by_warps, *of_tiles, sizes(entries, 8, 128))  # 231 and 242
    assert attention.pays(by_warps, *of_tiles, sizes(5 * entries, 8, 16))  # 120 and 247
    assert attention.pays(by_warps, *of_tiles, sizes(17 * entries, 1, 64))  # 106 and 241
    # by warpgroups, 1 %, 2 % and 4 %: 130 and 62, 131 and 101, 131 and 176
    assert not attention.pays(by_groups, *of_tiles, sizes(entries * 2 // 3, 8, 64))
    assert attention.pays(by_groups, *of_tiles, sizes(entries * 4 // 3, 8, 64))


def test_gradients_by_tiles_pay_where_rows_take_longer() -> None:
    entries, of_tiles, shapes = 335_000, (2048, 64), attention.WARPGROUPS  # 2 %
    # H100, eight blocks: by tiles 310 and 517 microseconds for 64 and 128 columns; by rows and
    # columns 206 and 389 at 2 %, 366 and 723 at 4 %
    for columns in (64, 128):
        known = (8, columns)
        assert not attention.pays(shapes, *of_tiles, sizes(entries, *known), gradients=True)
        assert attention.pays(shapes, *of_tiles, sizes(2 * entries, *known), gradients=True)


def test_gradients_of_columns_go_through_long_panels() -> None:
    shapes = attention.WARPGROUPS
    # H100: 16384 x 1024 529 microseconds, 1024 x 16384 687; rows hardly depend on it
    tall, flat = (
        RowSizes(16384, 1024, 335_544, 4, 64, 64),
        RowSizes(1024, 16384, 83_886, 16, 64, 64),
    )
    for one, most, measured in ((tall, 16, 529), (flat, 256, 687)):
        found = attention.time_of(shapes, 2048, most, one, gradients=True)
        assert abs(found / measured - 1) < 0.1


def test_rows_of_operands_that_do_not_fill_their_lanes_are_left_to_tiles_earlier() -> None:
    entries, of_tiles, shapes = 671_000, (2048, 64), attention.WARPGROUPS  # 4 %
    # H100, 16 blocks of 40 columns: by tiles 253 and 611 microseconds, by rows 505 and 1632
    one = sizes(entries // 2, 16, 40)
    assert attention.pays(shapes, *of_tiles, one)
    assert attention.pays(shapes, *of_tiles, one, gradients=True)
    assert not attention.pays(shapes, *of_tiles, sizes(entries // 2, 16, 64), gradients=True)
