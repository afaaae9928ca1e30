// The row of each entry of a tile of compressed rows.
#pragma once
#include "simt/bits.hpp"
#include "simt/lanes.hpp"

namespace wl {

struct row_range {
  i64 first, last;
};

// The rows of two entries, found by all lanes of a wave: each lane tests another row.
template <class I>
WL_DEVICE row_range rows_of_entries(const item& it, const I* indptr, i64 m, i64 first, i64 last) {
  i64 low[2] = {0, 0}, high[2] = {m, m};
  const i64 e[2] = {first, last};
  while (high[0] - low[0] > 1 || high[1] - low[1] > 1) {
#pragma unroll
    for (int a = 0; a < 2; ++a) {
      const i64 step = (high[a] - low[a] + WL_WARP - 1) / WL_WARP;
      const i64 row = low[a] + (lane_of(it) + 1) * step;
      const bool is_passed = row < high[a] && i64(indptr[row]) <= e[a];
      low[a] += ones_in(ballot(is_passed)) * step;
      high[a] = high[a] - low[a] < step ? high[a] : low[a] + step;
    }
  }
  return {low[0], low[1]};
}

// The row of an entry, one of a range of rows.
template <class I>
WL_DEVICE i64 row_of_entry(const I* indptr, row_range rows, i64 e) {
  i64 low = rows.first, high = rows.last + 1;
  while (high - low > 1) {
    const i64 middle = low + (high - low) / 2;
    if (i64(indptr[middle]) <= e)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// The largest number of rows of a range in which marks of 16 bits can number the rows. In a longer
// range, with more empty rows, each entry searches for its row.
constexpr i64 kMarkedRows = 0xffff;
WL_DEVICE bool can_mark(row_range rows) { return rows.last - rows.first < kMarkedRows; }

// marks = the number of a row, counted from 1, at its first entry in a tile and in each group of
// `group` entries. The block has set the marks to 0 before.
template <class I>
WL_DEVICE void mark_rows(const item& it, const I* indptr, row_range rows, i64 tile, i64 end,
                         int group, u16* marks) {
  for (i64 i = rows.first + it.thread(); i <= rows.last; i += WL_BLOCK) {
    const i64 from = i64(indptr[i]) - tile, to = i64(indptr[i + 1]) - tile;
    const int first = from < 0 ? 0 : int(from), last = to < end - tile ? int(to) : int(end - tile);
    for (int at = first; at < last; at = (at / group + 1) * group)
      marks[at] = u16(i - rows.first + 1);
  }
}

// The number of the row of each lane's entry, counted from 1; `before` is the number of the row of
// the last entry before the wave.
WL_DEVICE u32 marked_row(const item& it, u32 mark, u32 before) {
  const int lane = lane_of(it);
  const u64 marked = ballot(mark != 0) & ((u64(2) << lane) - 1);
  const u32 found = u32(shuffle(i32(mark), marked ? last_one_in(marked) : 0));
  return marked ? found : before;
}

} // namespace wl
