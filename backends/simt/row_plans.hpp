// Statistics of row lengths for plans of products, and the layouts derived from them: orders within
// windows, lanes and slices. See gpu/spmv/on_device.py.
#pragma once
#include "simt/packs.hpp"

namespace wl {

// Statistics of the lengths of lanes. Squares are added up in two parts, which do not overflow:
// `low` adds up the lower 24 bits.
struct length_numbers {
  i64 longest, filled, low, high, slices, entries;
  WL_DEVICE length_numbers& operator+=(const length_numbers& o) {
    longest = o.longest > longest ? o.longest : longest;
    filled += o.filled;
    low += o.low;
    high += o.high;
    slices += o.slices;
    entries += o.entries;
    return *this;
  }
};

template <class T>
WL_DEVICE T longest_of_lanes(const item& it, T value) {
  for (int d = WL_WARP / 2; d > 0; d /= 2) {
    const T other = shuffle_xor(it, value, d);
    value = other > value ? other : value;
  }
  return value;
}

// lengths[v] = the number of entries of lane v, which is row order[v], or row v if `order` is null.
// start[v] is the first entry.
template <class I>
WL_DEVICE void lay_lanes(const item& it, i64 lanes, const I* indptr, const i32* order, i64* start,
                         i32* length) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 v = it.block() * WL_BLOCK + it.thread(); v < lanes; v += step) {
    const i64 row = order ? i64(order[v]) : v;
    start[v] = i64(indptr[row]);
    length[v] = i32(indptr[row + 1] - indptr[row]);
  }
}

// numbers = the longest lane, the number of lanes that are not empty, the sums of the low and high
// parts of squared lengths, and the entries of all slices with their padding and without it. Lane v
// has the length of row order[v], or of row v if `order` is null. `partials` holds six values per
// block.
template <class I>
WL_DEVICE void measure_rows(const item& it, i64 m, const I* indptr, const i32* order, i64* numbers,
                            i64* partials, i32* counter) {
  const i64 step = it.blocks() * WL_BLOCK, padded = (m + WL_WARP - 1) / WL_WARP * WL_WARP;
  length_numbers mine{};
  for (i64 v = it.block() * WL_BLOCK + it.thread(); v - lane_of(it) < padded; v += step) {
    const i64 row = v < m ? (order ? i64(order[v]) : v) : 0;
    const i64 length = v < m ? i64(indptr[row + 1] - indptr[row]) : 0;
    const u64 squared = u64(length) * u64(length);
    const i64 width = longest_of_lanes(it, length);
    mine += length_numbers{length,
                           length > 0,
                           i64(squared & 0xffffff),
                           i64(squared >> 24),
                           lane_of(it) == 0 ? width * WL_WARP : 0,
                           length};
  }
  mine = sum_of_block(it, mine);
  auto* const parts = reinterpret_cast<length_numbers*>(partials);
  if (it.thread() == 0)
    parts[it.block()] = mine;
  if (!is_last_block(it, counter))
    return;
  length_numbers all{};
  for (i64 b = it.thread(); b < it.blocks(); b += WL_BLOCK)
    all += parts[b];
  all = sum_of_block(it, all);
  if (it.thread() == 0)
    *reinterpret_cast<length_numbers*>(numbers) = all;
}

// The number of rows that are longer than row i, or equally long and before it.
template <class I>
WL_DEVICE int longer_before(const I* indptr, int count, int i) {
  int before = 0;
  for (int j = 0; i < count && j < count; ++j) {
    const I mine = indptr[i + 1] - indptr[i], other = indptr[j + 1] - indptr[j];
    before += other > mine || (other == mine && j < i);
  }
  return before;
}

// Rows by decreasing length within windows of WINDOW rows; rows of equal length keep their order. A
// block processes one window at a time and counts for each row the rows that precede it: rows with
// a greater key of length and position. Four keys are read at once. If a length does not fit the
// key, the whole window uses the other method.
template <int WINDOW, class I>
WL_DEVICE void order_windows(const item& it, i64 m, const I* indptr, i32* order) {
  constexpr i32 longest = 0x7fffffff / WINDOW - 1;
  constexpr int each = (WINDOW + WL_BLOCK - 1) / WL_BLOCK;
  using four_numbers = pack<i32, 4>;
  WL_SHARED(four_numbers, numbers, WINDOW / 4);
  WL_SHARED(i32, too_long, 1);
  i32* const number = reinterpret_cast<i32*>(numbers);
  for (i64 first = it.block() * WINDOW; first < m; first += it.blocks() * WINDOW) {
    const int count = int(m - first < WINDOW ? m - first : WINDOW);
    it.barrier(); // all have read the previous window
    if (it.thread() == 0)
      too_long[0] = 0;
    it.barrier();
    for (int i = it.thread(); i < WINDOW; i += WL_BLOCK) {
      const i64 length = i < count ? i64(indptr[first + i + 1] - indptr[first + i]) : -1;
      if (length > longest)
        too_long[0] = 1;
      const i32 known = i32(length < longest ? length : longest);
      number[i] = length < 0 ? -1 : known * WINDOW + (WINDOW - 1 - i);
    }
    it.barrier();
    i32 mine[each];
    int before[each] = {};
#pragma unroll
    for (int u = 0; u < each; ++u)
      mine[u] = it.thread() + u * WL_BLOCK < WINDOW ? number[it.thread() + u * WL_BLOCK] : 0;
    for (int j = 0; j < WINDOW / 4; ++j) {
      const four_numbers four = numbers[j];
#pragma unroll
      for (int u = 0; u < each; ++u)
#pragma unroll
        for (int k = 0; k < 4; ++k)
          before[u] += four.at[k] > mine[u];
    }
    if (too_long[0])
      for (int u = 0; u < each; ++u)
        before[u] = longer_before(indptr + first, count, it.thread() + u * WL_BLOCK);
#pragma unroll
    for (int u = 0; u < each; ++u)
      if (it.thread() + u * WL_BLOCK < count)
        order[first + before[u]] = i32(first + it.thread() + u * WL_BLOCK);
  }
}

// widths[s] = the entries of slice s: WL_WARP lanes, each padded to the longest lane.
template <class I>
WL_DEVICE void measure_slices(const item& it, i64 lanes, const i32* length, I* widths) {
  const i64 step = it.blocks() * WL_BLOCK, padded = (lanes + WL_WARP - 1) / WL_WARP * WL_WARP;
  for (i64 v = it.block() * WL_BLOCK + it.thread(); v - lane_of(it) < padded; v += step) {
    const i32 width = longest_of_lanes(it, v < lanes ? length[v] : 0);
    if (lane_of(it) == 0 && v < padded)
      widths[v / WL_WARP] = I(width) * WL_WARP;
  }
}

// pointers[s] = s * width for s <= slices.
template <class I>
WL_DEVICE void equal_slices(const item& it, i64 slices, i64 width, I* pointers) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 s = it.block() * WL_BLOCK + it.thread(); s <= slices; s += step)
    pointers[s] = I(s * width);
}

} // namespace wl
