// The terms of a row of a product of sparse matrices, distributed evenly over a block: each step
// takes one term per work-item, from any number of right rows.
//
// Terms are numbered in the order of the left row. A prefix sum over its entries counts their
// terms, and each work-item finds the entry of its term by bisection.
#pragma once
#include "simt/block_scan.hpp"
#include "unified/search.hpp"
#include "simt/shared_atomics.hpp"

namespace wl {

// Entries of a left row that each work-item, and a block together, process in one step: loads of
// several entries are in flight at once.
constexpr int kEntriesEach = 2;
constexpr int kEntries = kEntriesEach * WL_BLOCK;

// A number above all columns.
constexpr i64 kNoColumn = 0x7fffffffffffffffLL;

// Shared memory for kEntries numbers each: the number of terms before an entry, and the position at
// which its right row would begin if it contained term 0.
template <class I>
struct term_list {
  i32* before;
  I* start;
};

// The smallest of several columns, as the operation of a reduction.
struct least_column {
  i64 value;
  WL_DEVICE least_column& operator+=(least_column o) {
    return value = o.value < value ? o.value : value, *this;
  }
};

// Calls use(active, e, f) for the terms of the left row begin <= e < end with columns of at least
// `low` and below `high`: e is the entry of the left row, f the entry of the right one. All
// work-items call it together, with active = false where there is no term. Returns the least column
// from `high` on that the work-item saw, or kNoColumn.
template <class I, class Use>
WL_DEVICE i64 for_terms(const item& it, term_list<I> list, I begin, I end, const I* indices,
                        const I* other_indptr, const I* other_indices, i64 low, i64 high,
                        Use&& use) {
  i64 next = kNoColumn;
  for (i64 base = begin; base < i64(end); base += kEntries) {
    const int listed = i64(end) - base < kEntries ? int(i64(end) - base) : kEntries;
    const int slot = it.thread() * kEntriesEach;
    I from[kEntriesEach], beyond[kEntriesEach];
    for (int j = 0; j < kEntriesEach; ++j) {
      const I row = slot + j < listed ? indices[base + slot + j] : I(0);
      from[j] = slot + j < listed ? other_indptr[row] : I(0);
      beyond[j] = slot + j < listed ? other_indptr[row + 1] : I(0);
    }
    i32 mine = 0;
    for (int j = 0; j < kEntriesEach; ++j) {
      if (low > 0 && from[j] < beyond[j] && i64(other_indices[from[j]]) < low)
        from[j] = not_below(from[j] + 1, beyond[j], other_indices, low);
      if (high < kNoColumn && from[j] < beyond[j] && i64(other_indices[beyond[j] - 1]) >= high) {
        beyond[j] = not_below(from[j], beyond[j] - 1, other_indices, high);
        const i64 column = other_indices[beyond[j]];
        next = column < next ? column : next;
      }
      mine += i32(beyond[j] - from[j]);
    }
    const partial_sum terms = sums_before(it, mine);
    i32 before = terms.before;
    for (int j = 0; j < kEntriesEach; ++j) {
      list.before[slot + j] = before;
      list.start[slot + j] = from[j] - I(before);
      before += i32(beyond[j] - from[j]);
    }
    it.barrier();
    for (i32 first = 0; first < terms.all; first += WL_BLOCK) {
      const i32 term = first + it.thread();
      const bool active = term < terms.all;
      // The last entry that has terms and begins at or before this term. Of entries that begin at
      // the same term, entries without terms come first.
      int entry = 0;
      for (int count = active ? listed : 1; count > 1;) {
        const int half = count / 2;
        entry += list.before[entry + half] <= term ? half : 0;
        count -= half;
      }
      use(active, base + entry, active ? list.start[entry] + I(term) : I(0));
    }
  }
  return next;
}

} // namespace wl
