// One pass of a radix sort: entries are moved into buckets by some bits of their keys, and the
// entries of a bucket keep their order. Each block processes a part of the entries. Three launches
// count the entries of each part and bucket, compute prefix sums, and move the entries. A later
// pass may process each bucket of the previous pass separately; the bucket is then a segment.
//
// The moved element is a 64-bit word: bits of the key, the index of the entry, and its other index.
// A tile is first sorted in shared memory, so that the words of a bucket are stored coalesced.
//
// D. Merrill, A. Grimshaw, High performance and scalable radix sorting, Parallel Processing Letters
// 21 (2011), for the three launches; S. Ashkiani et al., GPU multisplit, PPoPP 2016, for ranks in
// the order of lanes.
#pragma once
#include "simt/bits.hpp"
#include "simt/block_scan.hpp"
#include "simt/shared_atomics.hpp"

namespace wl {

// The largest number of digits of a pass, and the entries of a tile. A block uses 45 KiB of shared
// memory for them: four blocks fit on a multiprocessor of Hopper, and its registers limit it to
// four as well.
constexpr int kMostDigits = 1024;
constexpr int kTile = 4096;

// The parts of a word, from the upper bits to the lower ones: the key, the entry, the other index.
struct word_parts {
  i64 entry_bits, other_bits;
  WL_DEVICE u64 word(u64 key, i64 entry, u64 other) const {
    return (key << entry_bits | u64(entry)) << other_bits | (other & ((u64(1) << other_bits) - 1));
  }
  // Each shift is by less than 64 bits: an index has at most 62.
  WL_DEVICE u64 key(u64 word) const { return word >> entry_bits >> other_bits; }
  WL_DEVICE i64 entry(u64 word) const {
    return i64(word >> other_bits & ((u64(1) << entry_bits) - 1));
  }
  WL_DEVICE i64 other(u64 word) const { return i64(word & ((u64(1) << other_bits) - 1)); }
};

// The entries of a block: consecutive tiles, within one segment if `bounds` is not null; and the
// position of the block's counts.
struct own_part {
  i64 segment, part, parts, begin, end;
  WL_DEVICE own_part(const item& it, i64 n, i64 tiles, i64 parts, const i32* bounds)
      : segment(it.block() / parts), part(it.block() % parts), parts(parts) {
    const i64 last = bounds ? i64(bounds[segment + 1]) : n;
    begin = (bounds ? i64(bounds[segment]) : 0) + part * tiles * kTile;
    end = last - begin < tiles * kTile ? last : begin + tiles * kTile;
  }
  // The positions of a digit: in the counts of the block, and in the starts of the segment.
  WL_DEVICE i64 count(i64 digits, i64 d) const { return start(digits, d) * parts + part; }
  WL_DEVICE i64 start(i64 digits, i64 d) const { return segment * digits + d; }
};

// The lanes of a wave as bits, in the smallest type that holds them.
template <bool WIDE>
struct lane_bits {
  using type = u32;
};
template <>
struct lane_bits<true> {
  using type = u64;
};
using lane_set = lane_bits<(WL_WARP > 8 * int(sizeof(u32)))>::type;

// The lanes with an entry of the same digit as this lane. `cell` has one cell of shared memory per
// digit, to which one lane of each digit writes its number: only digits that several lanes share
// are searched, one after the other.
WL_DEVICE lane_set lanes_alike(const item& it, bool is_entry, u32 digit, u16* cell) {
  const int lane = lane_of(it);
  if (is_entry)
    cell[digit] = u16(lane);
  wave_barrier();
  const bool is_late = is_entry && cell[digit] != lane;
  lane_set alike = lane_set(1) << lane;
  for (lane_set left = lane_set(ballot(is_late)); left != 0;) {
    const i32 of_first = shuffle(i32(digit), ones_in((left & (0 - left)) - 1));
    const bool is_alike = is_entry && i32(digit) == of_first;
    const lane_set found = lane_set(ballot(is_alike));
    alike = is_alike ? found : alike;
    left &= ~found;
  }
  return alike;
}

// The digit of an entry. WORDS tells whether the entries are already words, or keys.
template <int WORDS, class I>
WL_DEVICE int digit_at(const I* keys, const i64* words, i64 e, i64 shift, i64 digits) {
  const u64 from = WORDS ? u64(words[e]) : u64(keys[e]);
  return int(from >> shift & u64(digits - 1));
}

// counts = the number of entries of each digit in each part of each segment; `digits` is a power of
// two. All parts have the same number of tiles.
template <int WORDS, class I>
WL_DEVICE void split_count(const item& it, i64 n, i64 tiles, i64 parts, const i32* bounds,
                           i64 shift, i64 digits, const I* keys, const i64* words, i32* counts) {
  constexpr int each = 8; // loads in flight
  WL_SHARED(i32, count, kMostDigits);
  const own_part own(it, n, tiles, parts, bounds);
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
    counts[own.count(digits, d)] = count[d];
}

// counts = the number of entries of a digit in the preceding parts; starts = the number of entries
// with a smaller digit, then the total, and the count of the most frequent digit. Each block
// processes one digit.
template <class I>
WL_DEVICE void split_scan(const item& it, i64 digits, i64 parts, I* counts, I* starts,
                          i32* counter) {
  for (i64 d = it.block(); d < digits; d += it.blocks()) {
    i32 before = 0;
    for (i64 first = 0; first < parts; first += WL_BLOCK) {
      const i64 p = first + it.thread();
      I* const count = counts + d * parts + p;
      const i32 mine = p < parts ? i32(*count) : 0;
      const partial_sum sum = sums_before(it, mine);
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

} // namespace wl
