// Products of sparse matrices, row by row. See wollemi.core.operations.spgemm.
#pragma once
#include "unified/coarsen_rows.hpp"
#include "unified/search.hpp"

namespace wl {

// The number of entries of a left row for which the position in the right row and its column are
// stored.
constexpr i64 kKeptRows = 1 << 5;

// Calls use(column, sum) for the columns of a row of the product, in increasing order. Every term
// is read once; each right row keeps its own position.
template <class T, class I, class Use>
WL_DEVICE void merge_few_rows(I begin, I end, const I* indices, const T* values,
                              const I* other_indptr, const I* other_indices, const T* other_values,
                              Use&& use) {
  constexpr I none = sizeof(I) == 4 ? I(0x7fffffff) : I(0x7fffffffffffffffLL);
  const int rows = int(end - begin);
  I at[kKeptRows], beyond[kKeptRows], column[kKeptRows];
  for (int r = 0; r < rows; ++r) {
    const I row = indices[begin + r];
    at[r] = other_indptr[row], beyond[r] = other_indptr[row + 1];
    column[r] = at[r] < beyond[r] ? other_indices[at[r]] : none;
  }
  for (;;) {
    I next = none;
    for (int r = 0; r < rows; ++r)
      next = column[r] < next ? column[r] : next;
    if (next == none)
      return;
    T total(0);
    for (int r = 0; r < rows; ++r)
      if (column[r] == next) {
        total += rounded_product(values[begin + r], other_values[at[r]]);
        ++at[r];
        column[r] = at[r] < beyond[r] ? other_indices[at[r]] : none;
      }
    use(i64(next), total);
  }
}

// The same for left rows of any length: each column is searched for in all right rows.
template <class T, class I, class Use>
WL_DEVICE void merge_many_rows(I begin, I end, const I* indices, const T* values,
                               const I* other_indptr, const I* other_indices, const T* other_values,
                               Use&& use) {
  i64 last = -1;
  for (;;) {
    i64 next = -1;
    T total(0);
    for (I e = begin; e < end; ++e) {
      const I row = indices[e], beyond = other_indptr[row + 1];
      const I f = not_below(other_indptr[row], beyond, other_indices, last + 1);
      if (f == beyond)
        continue;
      const i64 column = other_indices[f];
      if (next < 0 || column < next)
        next = column, total = rounded_product(values[e], other_values[f]);
      else if (column == next)
        total += rounded_product(values[e], other_values[f]);
    }
    if (next < 0)
      return;
    use(next, total);
    last = next;
  }
}

template <class T, class I, class Use>
WL_DEVICE void merge_rows(I begin, I end, const I* indices, const T* values, const I* other_indptr,
                          const I* other_indices, const T* other_values, Use&& use) {
  if (i64(end - begin) <= kKeptRows)
    merge_few_rows(begin, end, indices, values, other_indptr, other_indices, other_values, use);
  else
    merge_many_rows(begin, end, indices, values, other_indptr, other_indices, other_values, use);
}

template <class T, class I>
struct spgemm_count {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_indptr, *other_indices;
  const T* other_values;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I count = 0;
    merge_rows(begin[i], end[i], indices, values, other_indptr, other_indices, other_values,
               [&](i64, T) { ++count; });
    return lengths[i] = count;
  }
};

template <class T, class I>
struct spgemm_fill {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_indptr, *other_indices;
  const T* other_values;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    merge_rows(begin[i], end[i], indices, values, other_indptr, other_indices, other_values,
               [&](i64 column, T total) {
                 new_indices[to] = I(column);
                 new_values[to++] = total;
               });
    return {};
  }
};

template <class T, class I>
struct spgemm_refill {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_indptr, *other_indices;
  const T* other_values;
  const I *target, *places;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const I first = target[i], beyond = target[i + 1];
    if (i64(end[i] - begin[i]) <= kKeptRows) {
      I to = first;
      merge_few_rows(begin[i], end[i], indices, values, other_indptr, other_indices, other_values,
                     [&](i64, T total) { new_values[to++] = total; });
      return {};
    }
    for (I to = first; to < beyond; ++to)
      new_values[to] = T(0);
    for (I e = begin[i]; e < end[i]; ++e) {
      I to = first; // the columns of a row increase, and so do their positions
      for (I f = other_indptr[indices[e]]; f < other_indptr[indices[e] + 1]; ++f) {
        to = not_below(to, beyond, places, i64(other_indices[f]));
        new_values[to] += rounded_product(values[e], other_values[f]);
      }
    }
    return {};
  }
};

} // namespace wl
