"""When attention by tiles pays."""

from __future__ import annotations

from wollemi.backends.cuda.products import tile_shapes as attention


def test_few_tiles_are_left_to_rows() -> None:
    entries, of_tiles = 503_000, (2048, 64)
    by_warps, by_groups = attention.WARPS, attention.WARPGROUPS
    # 3 %: measured, tiles and rows, 106 and 21, 146 and 136 microseconds
    assert not attention.pays(by_warps, *of_tiles, entries, 1, 64, 64)
    assert not attention.pays(by_warps, *of_tiles, entries, 8, 16, 16)  # 118 and 69
    assert attention.pays(by_warps, *of_tiles, entries, 8, 128, 128)  # 231 and 242
    assert attention.pays(by_warps, *of_tiles, 5 * entries, 8, 16, 16)  # 120 and 247
    assert attention.pays(by_warps, *of_tiles, 17 * entries, 1, 64, 64)  # 106 and 241
    # by warpgroups, 1 %, 2 % and 4 %: 130 and 62, 131 and 101, 131 and 176
    assert not attention.pays(by_groups, *of_tiles, entries * 2 // 3, 8, 64, 64)
    assert attention.pays(by_groups, *of_tiles, entries * 4 // 3, 8, 64, 64)


def test_gradients_by_tiles_pay_where_rows_take_longer() -> None:
    entries, of_tiles, shapes = 335_000, (2048, 64), attention.WARPGROUPS  # 2 %
    # H100, eight blocks: by tiles 314 and 521 microseconds for 64 and 128 columns; by rows and
    # columns 270 and 494 at 2 %, 485 and 921 at 4 %
    for columns in (64, 128):
        known = (8, columns, columns)
        assert not attention.pays(shapes, *of_tiles, entries, *known, gradients=True)
        assert attention.pays(shapes, *of_tiles, 2 * entries, *known, gradients=True)
