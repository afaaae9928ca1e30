// The last launch of a pass of a radix sort: see radix_split.hpp.
#pragma once
#include "simt/radix_rows.hpp"
#include "simt/radix_split.hpp"

namespace wl {

// The source of an entry's other index: its row, an array of coordinates, or the word of the entry.
enum split_source { kRows, kCoordinates, kWords };

// moved = the words of entries, sorted by digit within each segment. A word stores the bits of the
// key in `kept`. Nothing is moved if a digit has more entries than `most`. The other arguments are
// the arguments of split_count and split_scan; `all_digits` is the number of digits in all
// segments.
template <int SOURCE, class I>
WL_DEVICE void split_move(const item& it, i64 n, i64 tiles, i64 parts, const i32* bounds, i64 shift,
                          i64 digits, i64 all_digits, i64 most, i64 kept, i64 entry_bits,
                          i64 other_bits, i64 m, const I* indptr, const I* keys, const I* others,
                          const i64* words, const i32* counts, const i32* starts, i64* moved) {
  constexpr int waves = WL_BLOCK / WL_WARP, items = kTile / WL_BLOCK;
  constexpr int most_each = kMostDigits / WL_BLOCK;
  constexpr int quarter = 8 * sizeof(u16);
  constexpr u32 low = (1u << quarter) - 1;
  static_assert(waves * kMostDigits * sizeof(u16) <= kTile * sizeof(u64), "counts of waves fit");
  WL_SHARED(u64, staged, kTile);
  // digits of the sorted words; before that, marks of rows
  WL_SHARED(u16, digits_of, SOURCE == kWords ? 1 : kTile);
  WL_SHARED(i32, target, kMostDigits);
  u16* const of_waves = reinterpret_cast<u16*>(staged); // until all positions are known
  u16* const of_wave = of_waves + wave_of(it) * digits;
  const word_parts layout{entry_bits, other_bits};
  const lane_set below = (lane_set(1) << lane_of(it)) - 1;
  const int each = digits > WL_BLOCK ? int(digits / WL_BLOCK) : 1;
  if (starts[all_digits + 1] > most)
    return;
  const own_part own(it, n, tiles, parts, bounds);
  for (int d = it.thread(); d < digits; d += WL_BLOCK)
    target[d] = starts[own.start(digits, d)] + counts[own.count(digits, d)];

  for (i64 tile = own.begin; tile < own.end; tile += kTile) {
    const int count = own.end - tile < kTile ? int(own.end - tile) : kTile;
    const int first = wave_of(it) * (items * WL_WARP) + lane_of(it);
    u32 place[items]; // the digit, and its number of earlier occurrences in the wave
#pragma unroll
    for (int j = 0; j < items; ++j) {
      const int at = first + j * WL_WARP;
      place[j] =
          at < count ? u32(digit_at<SOURCE == kWords>(keys, words, tile + at, shift, digits)) : 0;
    }
    for (int at = it.thread(); at * 4 < waves * int(digits); at += WL_BLOCK)
      staged[at] = 0;
    row_range rows{0, 0};
    if constexpr (SOURCE == kRows) {
      rows = rows_of_entries(it, indptr, m, tile, tile + count - 1);
      for (int at = it.thread(); at < kTile; at += WL_BLOCK)
        digits_of[at] = 0;
    }
    it.barrier();
    if constexpr (SOURCE == kRows)
      if (can_mark(rows))
        mark_rows(it, indptr, rows, tile, tile + count, items * WL_WARP, digits_of);
#pragma unroll
    for (int j = 0; j < items; ++j) {
      const bool is_entry = first + j * WL_WARP < count;
      const u32 digit = place[j], met = of_wave[digit];
      wave_barrier();
      const lane_set alike = lanes_alike(it, is_entry, digit, of_wave);
      const int before = ones_in(alike & below);
      wave_barrier();
      if (is_entry && before == 0)
        of_wave[digit] = u16(met + ones_in(alike));
      wave_barrier();
      place[j] = digit << quarter | (met + before);
    }
    it.barrier();

    // The position in the tile of the first entry of each digit and wave.
    i32 last[most_each], mine = 0;
#pragma unroll
    for (int k = 0; k < most_each; ++k) {
      const int d = it.thread() * each + k;
      last[k] = 0;
      if (k < each && d < digits)
        for (int w = 0; w < waves; ++w)
          last[k] += of_waves[w * digits + d];
      mine += last[k];
    }
    i32 before = sums_before(it, mine).before;
#pragma unroll
    for (int k = 0; k < most_each; ++k) {
      const int d = it.thread() * each + k;
      if (k < each && d < digits) {
        target[d] -= before;
        for (int w = 0; w < waves; ++w) {
          const u16 met = of_waves[w * digits + d];
          of_waves[w * digits + d] = u16(before);
          before += met;
        }
      }
      last[k] = before;
    }
    it.barrier();
    u32 row[items];
#pragma unroll
    for (int j = 0; j < items; ++j) {
      place[j] += of_wave[place[j] >> quarter];
      row[j] = 0;
      if (SOURCE == kRows && can_mark(rows)) {
        const int at = first + j * WL_WARP;
        const u32 before = j > 0 ? u32(shuffle(i32(row[j > 0 ? j - 1 : 0]), WL_WARP - 1)) : 0;
        row[j] = marked_row(it, at < count ? digits_of[at] : 0, before);
      }
    }
    it.barrier();
#pragma unroll
    for (int j = 0; j < items; ++j) {
      const int at = first + j * WL_WARP;
      if (at < count) {
        const i64 e = tile + at;
        const u32 to = place[j] & low;
        if constexpr (SOURCE == kWords) {
          staged[to] = u64(words[e]);
        } else {
          i64 other = rows.first + row[j] - 1;
          if constexpr (SOURCE == kCoordinates)
            other = i64(others[e]);
          else if (!can_mark(rows))
            other = row_of_entry(indptr, rows, e);
          staged[to] = layout.word(u64(keys[e]) & u64(kept), e, u64(other));
          digits_of[to] = u16(place[j] >> quarter);
        }
      }
    }
    it.barrier();
#pragma unroll
    for (int j = 0; j < items; ++j) {
      const int at = it.thread() + j * WL_BLOCK;
      if (at < count) {
        const u64 word = staged[at];
        const int digit = SOURCE == kWords ? int(word >> shift & u64(digits - 1)) : digits_of[at];
        moved[target[digit] + at] = i64(word);
      }
    }
    it.barrier();
#pragma unroll
    for (int k = 0; k < most_each; ++k) {
      const int d = it.thread() * each + k;
      if (k < each && d < digits)
        target[d] += last[k];
    }
    it.barrier();
  }
}

} // namespace wl
