// A stable counting sort: converts coordinates to rows, and rows to columns. Each part of the
// entries is counted in its own counters, and then moved.
#pragma once
#include "cpu/first_row.hpp"

namespace wl {

// Counts the keys [begin, end).
template <class I>
inline void count_keys(const I* keys, i64 begin, i64 end, I* counts) {
  for (i64 e = begin; e < end; ++e)
    ++counts[keys[e]];
}

// Writes the beginning of each bucket and the end of the last one. Replaces the counts of each part
// by the position of the part's first entry of each bucket.
template <class I>
inline void find_buckets(i64 buckets, i64 parts, I* counts, I* pointers) {
  I before = 0;
  for (i64 bucket = 0; bucket < buckets; ++bucket) {
    pointers[bucket] = before;
    for (i64 part = 0; part < parts; ++part) {
      I& count = counts[part * buckets + bucket];
      const I mine = count;
      count = before;
      before += mine;
    }
  }
  pointers[buckets] = before;
}

// Moves coordinates [begin, end) to their rows; places[row] is the position of the next entry of a
// row.
template <class T, class I>
inline void move_coordinates(i64 begin, i64 end, const I* row, const I* col, const T* data,
                             I* places, I* indices, T* new_data) {
  for (i64 e = begin; e < end; ++e) {
    const I to = places[row[e]]++;
    indices[to] = col[e];
    new_data[to] = data[e];
  }
}

// Moves entries [begin, end) of compressed rows to their columns, and writes their original
// positions.
template <class T, class I>
inline void move_to_columns(i64 begin, i64 end, i64 m, const I* indptr, const I* indices,
                            const T* data, I* places, I* new_indices, T* new_data, I* order) {
  // the last row that begins at or before the first entry
  i64 row = first_row(m, begin + 1, [=](i64 r) { return i64(indptr[r]); }) - 1;
  for (i64 e = begin; e < end; ++row) {
    const i64 row_end = indptr[row + 1] < end ? i64(indptr[row + 1]) : end;
    for (; e < row_end; ++e) {
      const I to = places[indices[e]]++;
      new_indices[to] = static_cast<I>(row);
      new_data[to] = data[e];
      order[to] = static_cast<I>(e);
    }
  }
}

} // namespace wl
