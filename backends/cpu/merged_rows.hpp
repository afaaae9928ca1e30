// Rows of alpha A + beta B, merged from rows of both matrices with strictly increasing columns.
#pragma once
#include "cpu/arithmetic.hpp"
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
      I length = one_pattern ? indptr[row + 1] - indptr[row] : I(0);
      if (!one_pattern)
        merge(row, [&](I, I, bool, bool) { ++length; });
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
      merge(row, [&](I a, I b, bool of_a, bool of_b) {
        new_indices[at] = of_a ? indices[a] : other_indices[b];
        T value = of_a ? rounded_product(alpha, data[a]) : rounded_product(beta, other_data[b]);
        if (of_a && of_b)
          value += rounded_product(beta, other_data[b]);
        new_data[at++] = value;
      });
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

  // Calls use(a, b, of_a, of_b) for each column of a row: the entries of both matrices, and which
  // of the matrices have one.
  template <class Use>
  inline void merge(i64 row, Use&& use) const {
    I a = indptr[row], b = other_indptr[row];
    const I a_end = indptr[row + 1], b_end = other_indptr[row + 1];
    while (a < a_end && b < b_end) {
      const bool of_a = indices[a] <= other_indices[b], of_b = other_indices[b] <= indices[a];
      use(a, b, of_a, of_b);
      a += of_a, b += of_b;
    }
    for (; a < a_end; ++a)
      use(a, b, true, false);
    for (; b < b_end; ++b)
      use(a, b, false, true);
  }
};

} // namespace wl
