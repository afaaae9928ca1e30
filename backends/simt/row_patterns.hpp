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

// A hash of the offsets of row i from the diagonal, in order; raises `far` to the largest of them.
template <class I>
WL_DEVICE i64 hash_of_row(const I* indptr, const I* indices, i64 i, i64& far) {
  u64 h = u64(indptr[i + 1] - indptr[i]);
  for (I e = indptr[i]; e < indptr[i + 1]; ++e) {
    const i64 offset = i64(indices[e]) - i;
    h = scatter_bits(h * 0x9e3779b97f4a7c15ull + u64(offset));
    const i64 distance = offset < 0 ? -offset : offset;
    far = distance > far ? distance : far;
  }
  return i64(h);
}

// Whether two rows have the same offsets from the diagonal.
template <class I>
WL_DEVICE bool same_offsets(const I* indptr, const I* indices, i64 i, i64 other) {
  const I begin = indptr[i], beside = indptr[other], length = indptr[i + 1] - begin;
  bool same = length == indptr[other + 1] - beside;
  const I compared = same ? length : 0;
#pragma unroll 4
  for (I e = 0; e < compared; ++e) // to the end: loads that do not wait for a comparison overlap
    same &= i64(indices[begin + e]) - i == i64(indices[beside + e]) - other;
  return same;
}

WL_DEVICE i32 clipped(i64 far) { return far < 0x7fffffff ? i32(far) : 0x7fffffff; }

// hash[i] = the hash of row i. Raises `reach` to the largest offset (at most 2^31 - 1).
template <class I>
WL_DEVICE void examine_rows(const item& it, i64 m, const I* indptr, const I* indices, i64* hash,
                            i32* reach) {
  const i64 step = it.blocks() * WL_BLOCK;
  i64 far = 0;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step)
    hash[i] = hash_of_row(indptr, indices, i, far);
  raise_by_block(it, reach, clipped(far));
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

// Raises a cell to a value; returns the smaller value that it replaced, or the one that stays.
WL_DEVICE i64 raise_cell(i64* cell, i64 value) {
  i64 held = *static_cast<volatile i64*>(cell);
  while (held < value) {
    const i64 before = exchange_if(cell, held, value);
    if (before == held)
      break;
    held = before;
  }
  return held;
}

// Finds the patterns of rows in one pass: slots[i] = the slot of row i in a table of hashes,
// codes[s] = the number of slot s, by the size of hashes, models[number] = the least row of a
// pattern. `table` has SLOTS hashes, as many cells of m minus the least row, and the numbers
// `reach`, `found` and `wrong`, all of them 0 at first. Leaves off when there are more than `most`.
// Does nothing where `lengths`, the numbers of measure_rows, has more than `longest` or `slices`;
// `lengths` may be null.
//
// A block has a table of its own first: one that all rows ask took 9 milliseconds for half a
// million rows that differ, and 0.1 for a million rows of 27 patterns (H100). Most rows have the
// pattern of an earlier row of the same work-item, and are compared with that alone, while their
// entries are in the caches. All others are compared with a row of the same hash, since hashes may
// collide: the row that they replace in a cell, or that stays there. Rows that were ever in a cell
// are so compared one after the other, and `wrong` counts rows that differ.
template <int SLOTS, class I>
WL_DEVICE void find_patterns(const item& it, i64 m, const I* indptr, const I* indices, i64 most,
                             i64* table, u8* slots, u8* codes, i64* models, const i64* lengths,
                             i64 longest, i64 slices, i32* counter) {
  if (lengths && (lengths[0] > longest || lengths[4] > slices))
    return;
  WL_SHARED(i64, own, SLOTS);
  WL_SHARED(i64, least, SLOTS);
  WL_SHARED(i32, place, SLOTS); // one more than the slot in `table`
  WL_SHARED(i32, count, 1);
  i64* const model = table + SLOTS;
  i32* const reach = reinterpret_cast<i32*>(model + SLOTS);
  i32 *const found = reach + 1, *const wrong = reach + 2;
  for (int s = it.thread(); s < SLOTS; s += WL_BLOCK)
    own[s] = least[s] = place[s] = 0;
  if (it.thread() == 0)
    count[0] = 0;
  it.barrier();
  const i64 step = it.blocks() * WL_BLOCK;
  i64 far = 0, known = -1; // a row, and its slot
  int slot = 0;
  i32 differ = 0;
  bool too_many = false;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step) {
    if (known < 0 || !same_offsets(indptr, indices, i, known)) {
      const i64 hash = hash_of_row(indptr, indices, i, far), key = hash ? hash : 1;
      const int s = too_many ? -1 : slot_of<SLOTS>(own, key, count, i32(most));
      if (s >= 0 && *static_cast<volatile i32*>(place + s) == 0)
        place[s] = slot_of<SLOTS>(table, key, found, i32(most)) + 1;
      slot = s < 0 ? -1 : *static_cast<volatile i32*>(place + s) - 1;
      if (slot < 0) {
        too_many = true;
        known = -1;
        continue; // the reach of all rows is asked for
      }
      const i64 held = raise_cell(least + s, m - i);
      known = held ? m - held : i;
      differ += held && !same_offsets(indptr, indices, i, known);
    }
    reinterpret_cast<u16*>(slots)[i] = u16(slot);
  }
  raise_by_block(it, reach, clipped(far));
  it.barrier();
  if (it.thread() == 0 && count[0] > most)
    fetch_add(found, i32(most) + 1);
  for (int t = it.thread(); t < SLOTS; t += WL_BLOCK)
    if (place[t] > 0) {
      const i64 held = raise_cell(model + place[t] - 1, least[t]);
      differ += held && !same_offsets(indptr, indices, m - least[t], m - held);
    }
  if (differ)
    fetch_add(wrong, differ);
  if (!is_last_block(it, counter) || *static_cast<volatile i32*>(found) > most)
    return;
  if (it.thread() == 0)
    count[0] = 0;
  it.barrier();
  for (int s = it.thread(); s < SLOTS; s += WL_BLOCK)
    if (const i64 hash = *static_cast<volatile i64*>(table + s); hash != 0)
      own[add_to_cell(count, 1)] = hash;
  it.barrier();
  for (int s = it.thread(); s < SLOTS; s += WL_BLOCK) {
    const i64 mine = *static_cast<volatile i64*>(table + s);
    int number = 0;
    for (int o = 0; mine != 0 && o < count[0]; ++o)
      number += own[o] < mine;
    codes[s] = u8(number);
    if (mine != 0)
      models[number] = m - *static_cast<volatile i64*>(model + s);
  }
}

// pattern[i] = the number of the slot of row i; nothing where none or more than `most` were found.
template <int SLOTS>
WL_DEVICE void write_patterns(const item& it, i64 m, i64 most, const i64* table, const u8* slots,
                              const u8* codes, u8* pattern) {
  const i32 found = reinterpret_cast<const i32*>(table + 2 * SLOTS)[1];
  if (found == 0 || found > most)
    return;
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step)
    pattern[i] = codes[reinterpret_cast<const u16*>(slots)[i]];
}

// Counts the rows that differ from the row which stands for their pattern: hashes may collide.
template <class I>
WL_DEVICE void check_patterns(const item& it, i64 m, const I* indptr, const I* indices,
                              const u8* pattern, const i64* model, i32* wrong) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step)
    if (!same_offsets(indptr, indices, i, model[pattern[i]]))
      fetch_add(wrong, 1);
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
