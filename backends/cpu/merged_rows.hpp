// Rows of alpha A + beta B, merged from rows of both matrices with strictly increasing columns.
#pragma once
#include "cpu/arithmetic.hpp"
#include "unified/choice.hpp"
#include "unified/rounding.hpp"

namespace wl {

// Merging reads each row twice, the first time to count. It needs no dense array of columns and is
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
    i64 total = 0;
    for (i64 row = begin; row < end; ++row) {
      const bool one_pattern = has_one_pattern(row);
      if (!rises(row, indptr, indices) || !(one_pattern || rises(row, other_indptr, other_indices)))
        return -1;
      const I length = one_pattern ? indptr[row + 1] - indptr[row] : columns_of(row);
      lengths[row] = length;
      total += length;
    }
    return total;
  }

  // Fills rows [begin, end) at the positions of target.
  inline void fill(i64 begin, i64 end, T alpha, T beta, const I* target, I* new_indices,
                   T* new_data) const {
    I at = target[begin];
    for (i64 row = begin; row < end; ++row) {
      if (has_one_pattern(row)) {
        const I a = indptr[row], b = other_indptr[row], length = indptr[row + 1] - a;
        for (I e = 0; e < length; ++e)
          new_indices[at + e] = indices[a + e];
        for (I e = 0; e < length; ++e)
          new_data[at + e] =
              rounded_product(alpha, data[a + e]) + rounded_product(beta, other_data[b + e]);
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
        new_data[at] = chosen(column == other, first + second, chosen(of_a, first, second));
        a += of_a, b += of_b;
      }
      for (; a < a_end; ++a, ++at)
        new_indices[at] = indices[a], new_data[at] = rounded_product(alpha, data[a]);
      for (; b < b_end; ++b, ++at)
        new_indices[at] = other_indices[b], new_data[at] = rounded_product(beta, other_data[b]);
    }
  }

private:
  // Whether a row has the same columns in both matrices, as in symmetric patterns.
  inline bool has_one_pattern(i64 row) const {
    const I a = indptr[row], b = other_indptr[row], length = indptr[row + 1] - a;
    return other_indptr[row + 1] - b == length && all_equal(indices + a, other_indices + b, length);
  }

  static inline bool rises(i64 row, const I* begins, const I* columns) {
    bool good = true;
    for (I e = begins[row] + 1; e < begins[row + 1]; ++e)
      good &= columns[e - 1] < columns[e];
    return good;
  }

  // The number of columns of a row of both.
  inline I columns_of(i64 row) const {
    I a = indptr[row], b = other_indptr[row], length = 0;
    const I a_end = indptr[row + 1], b_end = other_indptr[row + 1];
    for (; a < a_end && b < b_end; ++length) {
      const bool of_a = indices[a] <= other_indices[b], of_b = other_indices[b] <= indices[a];
      a += of_a, b += of_b;
    }
    return length + (a_end - a) + (b_end - b);
  }
};

} // namespace wl
