// One pass of a radix sort: entries are moved into buckets by some bits of their keys, and those of
// a bucket stay in their order. A block has a part of the entries; three launches count how many of
// each part belong to each bucket, add up what comes before, and move.
//
// What is moved is one word of 64 bits: bits of the key, then which entry it was, then its other
// index. Words of a tile are put in order in shared memory first, so that those of a bucket leave
// side by side.
//
// D. Merrill, A. Grimshaw, High performance and scalable radix sorting, Parallel Processing Letters
// 21 (2011), for the three launches; S. Ashkiani et al., GPU multisplit, PPoPP 2016, for ranks from
// ballots.
#pragma once
#include "bits.hpp"
#include "block_scan.hpp"
#include "shared_atomics.hpp"

namespace wl {

// Buckets at most: what a block of 256 counts for each wave takes as much as the words of a tile.
constexpr int kMostDigits = 2048;
constexpr int kTile = 4096;

// Where a word has its parts, from above: the key, the entry, the other index.
struct word_parts {
  i64 entry_bits, other_bits;
  WL_DEVICE u64 word(u64 key, i64 entry, u64 other) const {
    return (key << entry_bits | u64(entry)) << other_bits | other;
  }
  // Shifts are of less than 64 bits: an index has a bit for each place of at most 2^62.
  WL_DEVICE u64 key(u64 word) const { return word >> entry_bits >> other_bits; }
  WL_DEVICE i64 entry(u64 word) const {
    return i64(word >> other_bits & ((u64(1) << entry_bits) - 1));
  }
  WL_DEVICE i64 other(u64 word) const { return i64(word & ((u64(1) << other_bits) - 1)); }
};

// Which entries a block has: tiles that follow one another.
struct own_tiles {
  i64 begin, end;
  WL_DEVICE own_tiles(const item& it, i64 n, i64 tiles)
      : begin(it.block() * tiles * kTile),
        end(n - begin < tiles * kTile ? n : begin + tiles * kTile) {}
};

// The lanes of a wave as bits, in no more than it takes.
template <bool WIDE>
struct lane_bits {
  using type = u32;
};
template <>
struct lane_bits<true> {
  using type = u64;
};
using lane_set = lane_bits<(WL_WARP > 8 * int(sizeof(u32)))>::type;

// The digit of an entry. WORDS tells whether entries are words already, or keys.
template <int WORDS, class I>
WL_DEVICE int digit_at(const I* keys, const i64* words, i64 e, i64 shift, i64 digits) {
  const u64 from = WORDS ? u64(words[e]) : u64(keys[e]);
  return int(from >> shift & u64(digits - 1));
}

// counts[d * blocks + b] = how many entries of block b have digit d, of `digits`, a power of two.
template <int WORDS, class I>
WL_DEVICE void split_count(const item& it, i64 n, i64 tiles, i64 shift, i64 digits, const I* keys,
                           const i64* words, i32* counts) {
  constexpr int each = 8; // loads under way
  WL_SHARED(i32, count, kMostDigits);
  const own_tiles own(it, n, tiles);
  for (int d = it.thread(); d < digits; d += WL_BLOCK)
    count[d] = 0;
  it.barrier();
  for (i64 e = own.begin + it.thread(); e < own.end; e += each * WL_BLOCK) {
    int digit[each];
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const i64 at = e + j * WL_BLOCK;
      digit[j] = at < own.end ? digit_at<WORDS>(keys, words, at, shift, digits) : -1;
    }
#pragma unroll
    for (int j = 0; j < each; ++j)
      if (digit[j] >= 0)
        add_to_cell(count + digit[j], 1);
  }
  it.barrier();
  for (int d = it.thread(); d < digits; d += WL_BLOCK)
    counts[d * it.blocks() + it.block()] = count[d];
}

// counts = how many entries of a digit are in the parts before; starts = how many have a smaller
// digit, all in the end, and how many the most frequent digit has. A block has a digit.
template <class I>
WL_DEVICE void split_scan(const item& it, i64 digits, i64 parts, I* counts, I* starts,
                          i32* counter) {
  for (i64 d = it.block(); d < digits; d += it.blocks()) {
    i32 before = 0;
    for (i64 first = 0; first < parts; first += WL_BLOCK) {
      const i64 p = first + it.thread();
      I* const count = counts + d * parts + p;
      const partial_sum sum = sums_before(it, p < parts ? i32(*count) : 0);
      if (p < parts)
        *count = I(before + sum.before);
      before += sum.all;
    }
    if (it.thread() == 0)
      starts[d] = before;
  }
  if (is_last_block(it, counter)) {
    i32 before = 0, most = 0;
    for (i64 first = 0; first < digits; first += WL_BLOCK) {
      const i64 d = first + it.thread();
      const i32 mine = d < digits ? i32(starts[d]) : 0;
      const partial_sum sum = sums_before(it, mine);
      if (d < digits)
        starts[d] = before + sum.before;
      before += sum.all;
      most = mine > most ? mine : most;
    }
    most = sum_of_block(it, larger{most}).value;
    if (it.thread() == 0) {
      starts[digits] = before;
      starts[digits + 1] = most;
    }
  }
}

// The last of the rows from `low` on and below `high` that begins no later than an entry.
template <class I>
WL_DEVICE i64 row_of_entry(const I* indptr, i64 low, i64 high, i64 e) {
  while (high - low > 1) {
    const i64 middle = low + (high - low) / 2;
    if (i64(indptr[middle]) <= e)
      low = middle;
    else
      high = middle;
  }
  return low;
}
// The same for two entries, by all lanes of a wave: each looks at another row.
struct row_range {
  i64 first, last;
};
template <class I>
WL_DEVICE row_range rows_of_entries(const item& it, const I* indptr, i64 m, i64 first, i64 last) {
  i64 low[2] = {0, 0}, high[2] = {m, m};
  const i64 e[2] = {first, last};
  while (high[0] - low[0] > 1 || high[1] - low[1] > 1) {
#pragma unroll
    for (int a = 0; a < 2; ++a) {
      const i64 step = (high[a] - low[a] + WL_WARP - 1) / WL_WARP;
      const i64 row = low[a] + (lane_of(it) + 1) * step;
      const int passed = ones_in(ballot(row < high[a] && i64(indptr[row]) <= e[a]));
      low[a] += passed * step;
      high[a] = high[a] - low[a] < step ? high[a] : low[a] + step;
    }
  }
  return {low[0], low[1]};
}

// Where an entry's other index comes from: it is its row, or is given, or the entry is a word.
enum split_source { kRows, kCoordinates, kWords };

// moved = the words of entries, sorted by digit. Of keys, words have the bits in `kept`. `tiles` as
// for split_count; counts and starts are those of split_scan.
template <int SOURCE, class I>
WL_DEVICE void split_move(const item& it, i64 n, i64 tiles, i64 shift, i64 digits, i64 kept,
                          i64 entry_bits, i64 other_bits, i64 m, const I* indptr, const I* keys,
                          const I* others, const i64* words, const i32* counts, const i32* starts,
                          i64* moved) {
  constexpr int waves = WL_BLOCK / WL_WARP, items = kTile / WL_BLOCK;
  constexpr int most_each = kMostDigits / WL_BLOCK;
  constexpr int half = 8 * sizeof(u32), quarter = half / 2;
  static_assert(waves * kMostDigits * sizeof(u16) <= kTile * sizeof(u64), "counts of waves fit");
  static_assert(kTile <= 1 << quarter, "places in a tile are short");
  WL_SHARED(u64, staged, kTile);
  WL_SHARED(i32, target, kMostDigits);
  u16* const of_waves = reinterpret_cast<u16*>(staged); // until all know their places
  u16* const of_wave = of_waves + wave_of(it) * digits;
  const word_parts parts{entry_bits, other_bits};
  const lane_set below = (lane_set(1) << lane_of(it)) - 1;
  const int each = digits > WL_BLOCK ? int(digits / WL_BLOCK) : 1;
  const own_tiles own(it, n, tiles);
  for (int d = it.thread(); d < digits; d += WL_BLOCK)
    target[d] = starts[d] + counts[d * it.blocks() + it.block()];

  for (i64 tile = own.begin; tile < own.end; tile += kTile) {
    const i64 end = own.end - tile < kTile ? own.end : tile + kTile;
    const i64 of_lane = tile + wave_of(it) * (items * WL_WARP) + lane_of(it);
    u32 place[items]; // digit, and how many of it come before in the wave
#pragma unroll
    for (int j = 0; j < items; ++j) {
      const i64 e = of_lane + j * WL_WARP;
      place[j] = e < end ? u32(digit_at<SOURCE == kWords>(keys, words, e, shift, digits)) : 0;
    }
    for (i64 at = it.thread(); at * 4 < waves * digits; at += WL_BLOCK)
      staged[at] = 0;
    it.barrier();
#pragma unroll
    for (int j = 0; j < items; ++j) {
      const bool is_entry = of_lane + j * WL_WARP < end;
      const u32 digit = place[j];
      lane_set peers = lane_set(ballot(is_entry));
      for (u32 bit = 1; bit < u32(digits); bit *= 2) {
        const bool vote = (digit & bit) != 0;
        const lane_set votes = lane_set(ballot(vote));
        peers &= vote ? votes : ~votes;
      }
      const int before = ones_in(peers & below);
      const u32 met = of_wave[digit];
      wave_barrier();
      if (is_entry && before == 0)
        of_wave[digit] = u16(met + ones_in(peers));
      wave_barrier();
      place[j] = digit << quarter | (met + before);
    }
    it.barrier();

    // Where each wave's entries of a digit begin in the tile.
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
          const u16 count = of_waves[w * digits + d];
          of_waves[w * digits + d] = u16(before);
          before += count;
        }
      }
      last[k] = before;
    }
    it.barrier();
#pragma unroll
    for (int j = 0; j < items; ++j)
      place[j] += of_wave[place[j] >> quarter];
    it.barrier();

    const i64 first = of_lane - lane_of(it);
    if (first < end) {
      row_range rows{0, 0};
      if constexpr (SOURCE == kRows)
        rows = rows_of_entries(it, indptr, m, first,
                               (end - first < items * WL_WARP ? end : first + items * WL_WARP) - 1);
#pragma unroll
      for (int j = 0; j < items; ++j) {
        const i64 e = of_lane + j * WL_WARP;
        if (e < end) {
          const u32 at = place[j] & ((1u << quarter) - 1);
          if constexpr (SOURCE == kWords) {
            staged[at] = u64(words[e]);
          } else {
            const i64 other = SOURCE == kRows
                                  ? row_of_entry(indptr, rows.first, rows.last + 1, e)
                                  : i64(others[e]);
            staged[at] = u64(other) << half | (place[j] >> quarter) << quarter | u32(e - tile);
          }
        }
      }
    }
    it.barrier();
    for (int at = it.thread(); at < end - tile; at += WL_BLOCK) {
      u64 word = staged[at];
      int digit;
      if constexpr (SOURCE == kWords) {
        digit = int(word >> shift & u64(digits - 1));
      } else {
        digit = int(u32(word) >> quarter);
        const i64 e = tile + i64(word & ((1u << quarter) - 1));
        word = parts.word(u64(keys[e]) & u64(kept), e, word >> half);
      }
      moved[target[digit] + at] = i64(word);
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
