// Which rows have the same pattern: by their hashes, then by a look at the rows; and the numbers
// and offsets of patterns. See gpu/spmv/on_device.py.
#pragma once
#include "simt/shared_atomics.hpp"

namespace wl {

WL_DEVICE u64 scatter_bits(u64 v) { // the finalizer of splitmix64
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ v >> 27) * 0x94d049bb133111ebull;
  return v ^ v >> 31;
}

// hash[i] = a hash of the offsets of row i from the diagonal, in order. Raises `reach` to the
// largest of them (at most 2^31 - 1).
template <class I>
WL_DEVICE void examine_rows(const item& it, i64 m, const I* indptr, const I* indices, i64* hash,
                            i32* reach) {
  const i64 step = it.blocks() * WL_BLOCK;
  i64 far = 0;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step) {
    u64 h = u64(indptr[i + 1] - indptr[i]);
    for (I e = indptr[i]; e < indptr[i + 1]; ++e) {
      const i64 offset = i64(indices[e]) - i;
      h = scatter_bits(h * 0x9e3779b97f4a7c15ull + u64(offset));
      const i64 distance = offset < 0 ? -offset : offset;
      far = distance > far ? distance : far;
    }
    hash[i] = i64(h);
  }
  raise_by_block(it, reach, far < 0x7fffffff ? i32(far) : 0x7fffffff);
}

// The slot of a nonzero hash in a table of SLOTS, where 0 marks free slots; a new hash increments
// `found`. -1 if more than `most` have been found.
template <int SLOTS>
WL_DEVICE int slot_of(i64* table, i64 hash, i32* found, i32 most) {
  for (int tried = 0, s = int(u64(hash) % SLOTS); tried < SLOTS; ++tried, s = (s + 1) % SLOTS) {
    i64 there = *static_cast<volatile i64*>(table + s);
    if (there == 0) {
      if (*static_cast<volatile i32*>(found) > most)
        return -1;
      there = exchange_if(table + s, i64(0), hash);
      if (there == 0 && fetch_add(found, 1) >= most)
        return -1;
    }
    if (there == 0 || there == hash)
      return s;
  }
  return -1;
}

// Lowers a cell to a value.
WL_DEVICE void lower_to(i64* cell, i64 value) {
  for (i64 held = *static_cast<volatile i64*>(cell); value < held;) {
    const i64 before = exchange_if(cell, held, value);
    held = before == held ? value : before;
  }
}

// Puts the hashes of rows into a table, and the least row of each into `model`, which begins as m.
// Leaves off when there are more than `most`. A block has a table of its own first: a table that
// all rows ask took 9 milliseconds for half a million rows that differ, and 0.1 for a million rows
// of 27 patterns (H100).
template <int SLOTS, class I>
WL_DEVICE void collect_patterns(const item& it, i64 m, const i64* hashes, i64 most, i64* table,
                                i64* model, i32* found) {
  WL_SHARED(i64, own, SLOTS);
  WL_SHARED(i64, least, SLOTS);
  WL_SHARED(i32, count, 1);
  for (int s = it.thread(); s < SLOTS; s += WL_BLOCK) {
    own[s] = 0;
    least[s] = m;
  }
  if (it.thread() == 0)
    count[0] = 0;
  it.barrier();
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step) {
    const int s = slot_of<SLOTS>(own, hashes[i] ? hashes[i] : 1, count, i32(most));
    if (s < 0)
      break;
    lower_to(least + s, i);
  }
  it.barrier();
  if (count[0] > most) {
    if (it.thread() == 0)
      fetch_add(found, i32(most) + 1);
    return;
  }
  for (int t = it.thread(); t < SLOTS; t += WL_BLOCK)
    if (own[t] != 0) {
      const int s = slot_of<SLOTS>(table, own[t], found, i32(most));
      if (s < 0)
        return;
      lower_to(model + s, least[t]);
    }
}

// Numbers the hashes of a table by their size: codes[s] is the number of slot s, models[number] the
// least row. One block. This kernel and the next ones do nothing where more than `most` were found.
template <int SLOTS, class I>
WL_DEVICE void number_patterns(const item& it, i64 most, const i32* found, const i64* table,
                               const i64* model, u8* codes, i64* models) {
  if (it.block() != 0 || *found > most)
    return;
  WL_SHARED(i64, hashes, SLOTS);
  for (int s = it.thread(); s < SLOTS; s += WL_BLOCK)
    hashes[s] = table[s];
  it.barrier();
  for (int s = it.thread(); s < SLOTS; s += WL_BLOCK) {
    const i64 mine = hashes[s];
    if (mine == 0)
      continue;
    int number = 0;
#pragma unroll 16
    for (int o = 0; o < SLOTS; ++o)
      number += hashes[o] != 0 && hashes[o] < mine;
    codes[s] = u8(number);
    models[number] = model[s];
  }
}

// pattern[i] = the number of the hash of row i.
template <int SLOTS, class I>
WL_DEVICE void write_patterns(const item& it, i64 m, const i64* hashes, i64 most, const i32* found,
                              const i64* table, const u8* codes, u8* pattern) {
  if (*found > most)
    return;
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step) {
    const i64 key = hashes[i] ? hashes[i] : 1;
    int s = int(u64(key) % SLOTS);
    while (table[s] != key)
      s = (s + 1) % SLOTS;
    pattern[i] = codes[s];
  }
}

// Counts the rows that differ from the row which stands for their pattern: hashes may collide.
// `found` may be null.
template <class I>
WL_DEVICE void check_patterns(const item& it, i64 m, const I* indptr, const I* indices, i64 most,
                              const i32* found, const u8* pattern, const i64* model, i32* wrong) {
  if (found && *found > most)
    return;
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step) {
    const i64 other = model[pattern[i]];
    const I length = indptr[i + 1] - indptr[i], begin = indptr[i], beside = indptr[other];
    bool same_row = length == indptr[other + 1] - beside;
    for (I e = 0; same_row && e < length; ++e)
      same_row = i64(indices[begin + e]) - i == i64(indices[beside + e]) - other;
    if (!same_row)
      fetch_add(wrong, 1);
  }
}

// offsets[p * width + j] = how far entry j of the row that stands for pattern p is from the
// diagonal, or `none` behind its last one.
template <class I>
WL_DEVICE void write_offsets(const item& it, i64 patterns, i64 width, i64 none, const I* indptr,
                             const I* indices, const i64* model, i32* offsets) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 v = it.block() * WL_BLOCK + it.thread(); v < patterns * width; v += step) {
    const i64 row = model[v / width], e = i64(indptr[row]) + v % width;
    offsets[v] = e < i64(indptr[row + 1]) ? i32(i64(indices[e]) - row) : i32(none);
  }
}

} // namespace wl
