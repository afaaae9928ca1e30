// The row of each entry of compressed rows.
#pragma once
#include "simt/radix_rows.hpp"

namespace wl {

// rows = the row of each entry, tile by tile.
template <class I>
WL_DEVICE void expand_rows(const item& it, i64 entries, i64 m, const I* indptr, I* rows) {
  constexpr int items = 8, of_wave = items * WL_WARP, of_tile = items * WL_BLOCK;
  WL_SHARED(u16, marks, of_tile);
  for (i64 tile = it.block() * of_tile; tile < entries; tile += it.blocks() * of_tile) {
    const i64 end = entries - tile < of_tile ? entries : tile + of_tile;
    const row_range range = rows_of_entries(it, indptr, m, tile, end - 1);
    for (int at = it.thread(); at < of_tile; at += WL_BLOCK)
      marks[at] = 0;
    it.barrier();
    if (can_mark(range))
      mark_rows(it, indptr, range, tile, end, of_wave, marks);
    it.barrier();
    u32 number = 0;
    for (int j = 0; j < items; ++j) {
      const int at = int(wave_of(it)) * of_wave + j * WL_WARP + lane_of(it);
      number = marked_row(it, marks[at], u32(shuffle(i32(number), WL_WARP - 1)));
      const i64 e = tile + at;
      if (e < end)
        rows[e] = I(can_mark(range) ? range.first + number - 1 : row_of_entry(indptr, range, e));
    }
    it.barrier();
  }
}

} // namespace wl
