// Rows of alpha A + beta B, merged from rows of both matrices with strictly increasing columns.
#pragma once
#include "cpu/arithmetic.hpp"
#include "cpu/ranks.hpp"
#include "unified/choice.hpp"
#include "unified/rounding.hpp"

namespace wl {

// Each row is read twice, the first time to count. That needs no dense array of columns and is
// faster than accumulating the rows one by one.
template <class T, class I>
struct merged_rows {
  const I *indptr, *indices;
  const T* data;
  const I *other_indptr, *other_indices;
  const T* other_data;

  // The work in the rows before a row.
  WL_DEVICE i64 before(i64 row) const { return i64(indptr[row]) + other_indptr[row] + row; }

  // Writes how many columns rows [begin, end) have, and returns how many all of them have; -1 if
  // one does not rise.
  inline i64 count(i64 begin, i64 end, I* lengths) const {
    if (!all_rise(begin, end, indptr, indices) ||
        !all_rise(begin, end, other_indptr, other_indices))
      return -1;
    i64 total = 0;
    for (i64 row = begin; row < end; ++row)
      total += lengths[row] = columns_of(row);
    return total;
  }

  // Fills rows [begin, end) at the positions of target.
  inline void fill(i64 begin, i64 end, T alpha, T beta, const I* target, I* new_indices,
                   T* new_data) const {
    I at = target[begin];
    for (i64 row = begin; row < end; ++row) {
      const I length = indptr[row + 1] - indptr[row];
      const bool one_pattern =
          other_indptr[row + 1] - other_indptr[row] == length && target[row + 1] - at == length;
      if (one_pattern) { // as in symmetric patterns: no row has a column that the other lacks
        const I a = indptr[row], b = other_indptr[row];
        for (I e = 0; e < length; ++e)
          new_indices[at + e] = indices[a + e];
        for (I e = 0; e < length; ++e)
          new_data[at + e] = without_negative_zero(rounded_product(alpha, data[a + e]) +
                                                   rounded_product(beta, other_data[b + e]));
        at += length;
        continue;
      }
      I a = indptr[row], b = other_indptr[row];
      const I a_end = indptr[row + 1], b_end = other_indptr[row + 1];
      // Which row has the next column cannot be predicted: both values are loaded.
      for (; a < a_end && b < b_end; ++at) {
        const I column = indices[a], other = other_indices[b];
        const bool of_a = column <= other, of_b = other <= column;
        const T first = rounded_product(alpha, data[a]);
        const T second = rounded_product(beta, other_data[b]);
        new_indices[at] = of_a ? column : other;
        new_data[at] = without_negative_zero(
            chosen(column == other, first + second, chosen(of_a, first, second)));
        a += of_a, b += of_b;
      }
      for (; a < a_end; ++a, ++at)
        new_indices[at] = indices[a],
        new_data[at] = without_negative_zero(rounded_product(alpha, data[a]));
      for (; b < b_end; ++b, ++at)
        new_indices[at] = other_indices[b],
        new_data[at] = without_negative_zero(rounded_product(beta, other_data[b]));
    }
  }

private:
  // The reference adds the terms of an entry to zero, which has no sign then.
  static inline T without_negative_zero(T total) { return total + T(0); }

  // Whether the columns of rows [begin, end) increase. The entries are one stream, since the ends
  // of short rows would be mispredicted branches; steps from one row to the next do not count.
  static inline bool all_rise(i64 begin, i64 end, const I* begins, const I* columns) {
    const I first = begins[begin], last = begins[end];
    I falls = 0;
    for (I e = first + 1; e < last; ++e)
      falls += columns[e - 1] >= columns[e];
    for (i64 row = begin; row < end; ++row) {
      const I e = begins[row];
      if (e > first && begins[row + 1] > e)
        falls -= columns[e - 1] >= columns[e];
    }
    return falls == 0;
  }

  // The number of columns of a row of both.
  inline I columns_of(i64 row) const {
    I a = indptr[row], b = other_indptr[row], length = 0;
    const I a_end = indptr[row + 1], b_end = other_indptr[row + 1], count = a_end - a;
    const bool equal = b_end - b == count;
    if (equal && count > ranked<I>::together && all_equal(indices + a, other_indices + b, count))
      return count;
    if (RANKS_ROWS && count <= RANKED && b_end - b <= RANKED)
      return count + (b_end - b) -
             I(common_columns(indices + a, count, other_indices + b, b_end - b));
    for (; a < a_end && b < b_end; ++length) {
      const bool of_a = indices[a] <= other_indices[b], of_b = other_indices[b] <= indices[a];
      a += of_a, b += of_b;
    }
    return length + (a_end - a) + (b_end - b);
  }

  // Whether common columns are counted by vectors of columns. That takes half of the time of a
  // merge of rows of 7 to 40 entries if a register holds eight columns.
  static constexpr bool RANKS_ROWS = SUMS_LANES && VECTOR_BYTES >= 32;
};

} // namespace wl
