// Comparisons of the entries of two matrices row by row, and the larger or smaller entries. See
// wollemi.core.operations.rows.
#pragma once
#include "unified/choice.hpp"
#include "unified/extremes.hpp"
#include "unified/status.hpp"

namespace wl {

// Calls use(column, e, has, f, other has) for all columns of two sorted rows without duplicates, in
// increasing order: e and f are the entries of this column if the rows have them.
template <class I, class Use>
WL_DEVICE void for_either(I e, I end, const I* indices, I f, I other_end, const I* other_indices,
                          Use&& use) {
  // Matrices that were derived from one another share their array of columns. The columns are then
  // not compared, and only columns that `use` needs are read.
  if (indices == other_indices && e == f && end == other_end) {
    for (; e < end; ++e)
      use(indices[e], e, true, e, true);
    return;
  }
  if (end - e == other_end - f) // the columns are often equal
    for (; e < end && indices[e] == other_indices[f]; ++e, ++f)
      use(indices[e], e, true, f, true);
  while (e < end && f < other_end) {
    const I column = indices[e], other = other_indices[f];
    const bool first = column <= other, second = other <= column;
    use(first ? column : other, e, first, f, second);
    e += first;
    f += second;
  }
  for (; e < end; ++e)
    use(indices[e], e, true, f, false);
  for (; f < other_end; ++f)
    use(other_indices[f], e, false, f, true);
}

// Calls use(column, value, other value) for the columns of both rows in increasing order, until it
// returns true; a missing value is 0.
// Which row has the next column cannot be predicted: both values are loaded, and no branch depends
// on the columns.
template <class T, class I, class Use>
WL_DEVICE void for_both_until(I e, I end, const I* indices, const T* values, I f, I other_end,
                              const I* other_indices, const T* other_values, Use&& use) {
  if (indices == other_indices && e == f && end == other_end) {
    while (e < end && !use(indices[e], values[e], other_values[e]))
      ++e;
    return;
  }
  if (end - e == other_end - f) // often the same columns
    for (; e < end && indices[e] == other_indices[f]; ++e, ++f)
      if (use(indices[e], values[e], other_values[f]))
        return;
  while (e < end && f < other_end) {
    const I column = indices[e], other = other_indices[f];
    const T value = values[e], other_value = other_values[f];
    const bool first = column <= other, second = other <= column;
    if (use(first ? column : other, chosen(first, value, T(0)), chosen(second, other_value, T(0))))
      return;
    e += first;
    f += second;
  }
  for (; e < end; ++e)
    if (use(indices[e], values[e], T(0)))
      return;
  for (; f < other_end; ++f)
    if (use(other_indices[f], T(0), other_values[f]))
      return;
}

// Counts the columns of both rows for which keeps(value, other value) is true.
template <class T, class I, class Keeps>
WL_DEVICE I count_of_both(I e, I end, const I* indices, const T* values, I f, I other_end,
                          const I* other_indices, const T* other_values, Keeps&& keeps) {
  I count = 0;
  for_both_until(e, end, indices, values, f, other_end, other_indices, other_values,
                 [&](I, T a, T b) { return count += keeps(a, b), false; });
  return count;
}

// Calls store(to, column, value, other value) for columns of both rows: it stores an entry, and
// returns whether it is kept. The next one overwrites an entry that is not, so that no branch has
// to be predicted; nothing is stored from `stop` on.
template <class T, class I, class Store>
WL_DEVICE void keep_of_both(I e, I end, const I* indices, const T* values, I f, I other_end,
                            const I* other_indices, const T* other_values, I to, I stop,
                            Store&& store) {
  if (to < stop)
    for_both_until(e, end, indices, values, f, other_end, other_indices, other_values,
                   [&](I column, T a, T b) {
                     to += store(to, column, a, b);
                     return to == stop;
                   });
}

// Returns functor.of_row(i, holds), where `holds` is the comparison with a code of
// wollemi.core.operations.rows.COMPARISONS: a loop then contains only one comparison. The functor
// has a template and not a lambda with auto, because NVRTC takes such a lambda for a host function.
template <class T, class Functor>
WL_DEVICE typename Functor::sum with_comparison(i64 comparison, const Functor& functor, i64 i) {
  switch (comparison) {
  case 0:
    return functor.of_row(i, [](T a, T b) { return a != b; });
  case 1:
    return functor.of_row(i, [](T a, T b) { return is_less(a, b); });
  case 2:
    return functor.of_row(i, [](T a, T b) { return is_less(b, a); });
  case 3:
    return functor.of_row(i, [](T a, T b) { return !(a != b); });
  case 4:
    return functor.of_row(i, [](T a, T b) { return bool(int(is_less(a, b)) | int(!(a != b))); });
  default:
    return functor.of_row(i, [](T a, T b) { return bool(int(is_less(b, a)) | int(!(a != b))); });
  }
}

template <class T, class I>
struct rows_count_compared {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_begin, *other_end, *other_indices;
  const T* other_values;
  i64 comparison;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return with_comparison<T>(comparison, *this, i);
  }
  template <class Holds>
  WL_DEVICE sum of_row(i64 i, Holds holds) const {
    return lengths[i] = count_of_both(begin[i], end[i], indices, values, other_begin[i],
                                      other_end[i], other_indices, other_values, holds);
  }
};

template <class T, class I>
struct rows_compare {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_begin, *other_end, *other_indices;
  const T* other_values;
  i64 comparison;
  const I* target;
  I* new_indices;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return with_comparison<T>(comparison, *this, i);
  }
  template <class Holds>
  WL_DEVICE sum of_row(i64 i, Holds holds) const {
    keep_of_both(begin[i], end[i], indices, values, other_begin[i], other_end[i], other_indices,
                 other_values, target[i], target[i + 1],
                 [&](I to, I column, T a, T b) { return new_indices[to] = column, holds(a, b); });
    return {};
  }
};

// The larger of two numbers, or the smaller; NaN if one is.
template <class T>
WL_DEVICE T extreme_of_pair(i64 larger, T a, T b) {
  const bool beyond = larger ? is_less(a, b) : is_less(b, a);
  const int other = int(!is_nan(a)) & (int(beyond) | int(is_nan(b)));
  return chosen(other != 0, b, a);
}

template <class T, class I>
struct rows_count_extremes {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_begin, *other_end, *other_indices;
  const T* other_values;
  i64 larger;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return lengths[i] = count_of_both(
               begin[i], end[i], indices, values, other_begin[i], other_end[i], other_indices,
               other_values, [&](T a, T b) { return extreme_of_pair(larger, a, b) != T(0); });
  }
};

template <class T, class I>
struct rows_extremes {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_begin, *other_end, *other_indices;
  const T* other_values;
  i64 larger;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    keep_of_both(begin[i], end[i], indices, values, other_begin[i], other_end[i], other_indices,
                 other_values, target[i], target[i + 1], [&](I to, I column, T a, T b) {
                   new_indices[to] = column;
                   return (new_values[to] = extreme_of_pair(larger, a, b)) != T(0);
                 });
    return {};
  }
};

template <class T, class I>
struct rows_count_compared_number {
  const I *begin, *end, *indices;
  const T* values;
  T number;
  i64 comparison;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return with_comparison<T>(comparison, *this, i);
  }
  template <class Holds>
  WL_DEVICE sum of_row(i64 i, Holds holds) const {
    I count = 0;
    for (I e = begin[i]; e < end[i]; ++e)
      count += holds(values[e], number);
    return lengths[i] = count;
  }
};

template <class T, class I>
struct rows_compare_number {
  const I *begin, *end, *indices;
  const T* values;
  T number;
  i64 comparison;
  const I* target;
  I* new_indices;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return with_comparison<T>(comparison, *this, i);
  }
  template <class Holds>
  WL_DEVICE sum of_row(i64 i, Holds holds) const {
    I to = target[i];
    for (I e = begin[i]; e < end[i]; ++e)
      if (holds(values[e], number))
        new_indices[to++] = indices[e];
    return {};
  }
};

} // namespace wl
