// Which rows have the same pattern, by their hashes, and the numbers of patterns. See
// gpu/spmv/on_device.py; examine_rows (structure.hpp) makes hashes, check_patterns looks at rows.
#pragma once
#include "shared_atomics.hpp"

namespace wl {

// The place of a hash in a table of SLOTS, which holds 0 where nothing is; a new one counts in
// `found`. -1 where more than `most` have been found.
template <int SLOTS>
WL_DEVICE int slot_of(i64* table, i64 hash, i32* found, i32 most) {
  const i64 key = hash ? hash : 1;
  for (int tried = 0, s = int(u64(key) % SLOTS); tried < SLOTS; ++tried, s = (s + 1) % SLOTS) {
    i64 there = *static_cast<volatile i64*>(table + s);
    if (there == 0) {
      there = exchange_if(table + s, i64(0), key);
      if (there == 0 && fetch_add(found, 1) >= most)
        return -1;
    }
    if (there == 0 || there == key)
      return s;
  }
  return -1;
}

// Puts the hashes of rows into a table, and the least row of each into `model`, which begins as m.
// Leaves off when there are more than `most`.
template <int SLOTS, class I>
WL_DEVICE void collect_patterns(const item& it, i64 m, const i64* hashes, i64 most, i64* table,
                                i64* model, i32* found) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step) {
    if (*static_cast<volatile i32*>(found) > most)
      return;
    const int s = slot_of<SLOTS>(table, hashes[i], found, i32(most));
    if (s < 0)
      return;
    i64 least = *static_cast<volatile i64*>(model + s);
    while (i < least) {
      const i64 before = exchange_if(model + s, least, i);
      least = before == least ? i : before;
    }
  }
}

// Numbers the hashes of a table by their size: codes[s] is the number of slot s, models[number] the
// least row. One block.
template <int SLOTS, class I>
WL_DEVICE void number_patterns(const item& it, const i64* table, const i64* model, u8* codes,
                               i64* models) {
  if (it.block() != 0)
    return;
  for (int s = it.thread(); s < SLOTS; s += WL_BLOCK) {
    int number = 0;
    for (int o = 0; o < SLOTS; ++o)
      number += table[o] != 0 && table[o] < table[s];
    if (table[s] != 0) {
      codes[s] = u8(number);
      models[number] = model[s];
    }
  }
}

// pattern[v] = the number of the hash of row order[v], or of row v where there is no order.
template <int SLOTS, class I>
WL_DEVICE void write_patterns(const item& it, i64 lanes, const i64* hashes, const i32* order,
                              const i64* table, const u8* codes, u8* pattern) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 v = it.block() * WL_BLOCK + it.thread(); v < lanes; v += step) {
    const i64 hash = hashes[order ? i64(order[v]) : v], key = hash ? hash : 1;
    int s = int(u64(key) % SLOTS);
    while (table[s] != key)
      s = (s + 1) % SLOTS;
    pattern[v] = codes[s];
  }
}

} // namespace wl
