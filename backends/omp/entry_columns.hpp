// The columns of a row's entries: listed for each entry, or a range between two columns.
//
// Entries are numbered row by row in either case: row i has the entries ptr[i], ..., ptr[i + 1] -
// 1, and columns(i)[e] is the column of entry e of that row.
#pragma once

#include "omp/pattern_plan.hpp"

namespace wl {

template <class I>
struct Listed {
  const I *ptr, *indices;

  const I* columns(i64) const { return indices; }
  void prefetch(i64 entry) const { prefetch_some(indices + entry); }
};

// Neighbours: number e is `shift + e`.
struct Neighbours {
  i64 shift;

  i64 operator[](i64 e) const { return shift + e; }
  Neighbours operator+(i64 e) const { return {shift + e}; }
};

template <class I>
struct Intervals {
  const i64* ptr;
  const I* first;

  Neighbours columns(i64 row) const { return {i64(first[row]) - ptr[row]}; }
  void prefetch(i64) const {}
};

} // namespace wl
