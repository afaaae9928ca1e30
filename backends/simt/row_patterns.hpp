// Finds rows with the same pattern, by hashes and by a comparison of the rows, and the numbers and
// offsets of the patterns. See gpu/spmv/on_device.py.
#pragma once
#include "simt/shared_atomics.hpp"

namespace wl {

WL_DEVICE u64 scatter_bits(u64 v) { // the finalizer of splitmix64
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ v >> 27) * 0x94d049bb133111ebull;
  return v ^ v >> 31;
}

// A hash of the offsets of row i from the diagonal, in order; raises `far` to the size of the
// largest offset.
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
  for (I e = 0; e < compared; ++e) // no early exit: loads that do not wait for a comparison overlap
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

// The slot of a nonzero hash in a table of SLOTS; 0 marks a free slot. A new hash increments
// `found`. Returns -1 if more than `most` hashes have been found.
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

// Raises a cell to a value. Returns the smaller of the two: the value that was replaced, or the
// value that was not stored.
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
// codes[s] = the rank of the hash of slot s, models[code] = the smallest row of a pattern. `table`
// holds SLOTS hashes, SLOTS cells with m minus the smallest row, and the numbers `reach`, `found`
// and `wrong`; all are 0 at first. The search stops when there are more than `most` patterns. It
// does nothing if `lengths`, the numbers of measure_rows, exceed `longest` or `slices`; `lengths`
// may be null.
//
// Each block first uses a table of its own. With one table for all rows half a million different
// rows took 9 milliseconds, against 0.1 for a million rows of 27 patterns (H100). Most rows have
// the pattern of the previous row of the same work-item. They are compared with this row alone,
// while its entries are in the caches. Any other row is compared with a row of the same hash,
// because hashes may collide: with the row that it replaces in a cell, or with the row that stays
// in the cell. So all rows that were ever in a cell are compared one after the other, and `wrong`
// counts the rows that differ.
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
        continue; // `far` is needed for all rows
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

// pattern[i] = the number of the pattern of row i; nothing if no pattern or more than `most` were
// found.
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

// Counts the rows that differ from the row that represents their pattern: hashes may collide.
template <class I>
WL_DEVICE void check_patterns(const item& it, i64 m, const I* indptr, const I* indices,
                              const u8* pattern, const i64* model, i32* wrong) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step)
    if (!same_offsets(indptr, indices, i, model[pattern[i]]))
      fetch_add(wrong, 1);
}

// offsets[p * width + j] = the offset from the diagonal of entry j of the row that represents
// pattern p; `none` after its last entry.
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
