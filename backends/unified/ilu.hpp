// Incomplete factors on a known pattern: their triangles, scaling, checks, and splitting. See
// wollemi.core.operations.ilu.
#pragma once
#include "unified/search.hpp"
#include "unified/status.hpp"

namespace wl {

struct located_counts {
  i64 missing, lower, upper;
  WL_DEVICE located_counts& operator+=(located_counts o) {
    return missing += o.missing, lower += o.lower, upper += o.upper, *this;
  }
};

template <class I>
struct ilu_locate {
  const I *begin, *end, *indices;
  I *diagonal, *below, *above;
  i64 *missing, *lower, *upper;
  WL_SUM(located_counts);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const I beyond = end[i], place = not_below(begin[i], beyond, indices, i);
    const bool found = place < beyond && i64(indices[place]) == i;
    diagonal[i] = place;
    below[i] = place - begin[i];
    above[i] = beyond - place - I(found);
    return {!found, i64(below[i]), i64(above[i])};
  }
  WL_DEVICE void finish(i64, sum s) const {
    *missing = s.missing, *lower = s.lower, *upper = s.upper;
  }
};

template <class I>
struct ilu_part {
  const I *first, *length, *indices, *target;
  I* new_indices;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const I count = length[i], from = first[i], to = target[i];
    for (I e = 0; e < count; ++e)
      new_indices[to + e] = indices[from + e];
    return {};
  }
};

template <class T, class I>
struct ilu_scale {
  const I *a_begin, *a_end, *a_indices;
  const T* a;
  const I *begin, *end, *indices;
  const T *scale, *phase;
  real_t<T> shift;
  T* v;
  i64* outside;
  WL_COUNT(outside);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const T own = scale[i], added = T(shift) * phase[i];
    const I a_beyond = a_end[i];
    I at = a_begin[i];
    i64 left_out = 0;
    for (I e = begin[i]; e < end[i]; ++e) {
      const I j = indices[e];
      for (; at < a_beyond && a_indices[at] < j; ++at)
        ++left_out;
      T value(0);
      if (at < a_beyond && a_indices[at] == j)
        value = a[at++] * own * scale[j];
      v[e] = i64(j) == i ? value + added : value;
    }
    return left_out + (a_beyond - at);
  }
};

template <class T, class I>
struct ilu_guess {
  const I *rows, *indices, *diagonal;
  const T* a;
  T* v;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 e, i64, const column_state&) const {
    const I j = indices[e];
    v[e] = rows[e] > j ? a[e] / a[diagonal[j]] : a[e];
    return {};
  }
};

template <class T, class I>
struct ilu_unfit {
  const I *begin, *end, *diagonal;
  const T* v;
  real_t<T> smallest, largest;
  i64 of_real;
  i64* count;
  WL_COUNT(count);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    i64 found = 0;
    for (I e = begin[i]; e < end[i]; ++e)
      found += !(magnitude(v[e]) < largest);
    const T pivot = v[diagonal[i]];
    return found + !((of_real ? real(pivot) : magnitude(pivot)) > smallest);
  }
};

template <class T, class I>
struct ilu_upper {
  const I *diagonal, *end;
  const T* v;
  const I* target;
  i64 of_real;
  T *upper, *inverse;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const I beyond = end[i];
    I e = diagonal[i], to = target[i];
    const T factor = T(1) / v[e];
    inverse[i] = of_real ? T(real(factor)) : factor;
    while (++e < beyond)
      upper[to++] = -v[e] * factor;
    return {};
  }
};

template <class T, class I>
struct ilu_lower {
  const I *begin, *diagonal;
  const T* v;
  const I* target;
  T* lower;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const I beyond = diagonal[i];
    I to = target[i];
    for (I e = begin[i]; e < beyond; ++e)
      lower[to++] = -v[e];
    return {};
  }
};

template <class T, class I>
struct ilu_adjoint {
  const I* places;
  const T* upper;
  T* lower;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 e, i64, const column_state&) const {
    return lower[e] = conj(upper[places[e]]), sum{};
  }
};

// Whether the computation of a number from another one overflowed or underflowed.
template <class T>
WL_DEVICE bool is_lost(T made, T given) {
  return !finite(made) || (made == T(0)) != (given == T(0));
}

template <class T, class I>
struct ilu_join {
  const I *lower_begin, *lower_end, *lower_indices;
  const T* lower;
  const I *upper_begin, *upper_end, *upper_indices;
  const T *upper, *inverse, *left, *right;
  T *below, *above, *first;
  i64* lost;
  WL_COUNT(lost);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const T own = left[i], joined = inverse[i] * own;
    i64 found = is_lost(joined, inverse[i]);
    first[i] = joined;
    for (I e = lower_begin[i]; e < lower_end[i]; ++e) {
      const T made = lower[e] / (inverse[lower_indices[e]] * own);
      found += is_lost(made, lower[e]);
      below[e] = made;
    }
    for (I e = upper_begin[i]; e < upper_end[i]; ++e) {
      const T made = upper[e] / right[upper_indices[e]];
      found += is_lost(made, upper[e]);
      above[e] = made;
    }
    return found;
  }
};

template <class T, class I>
struct ilu_rescale {
  const I *lower_begin, *lower_end, *lower_indices;
  const T* lower;
  const I *upper_begin, *upper_end, *upper_indices;
  const T *upper, *inverse, *left, *right;
  T *below, *above, *between;
  i64* lost;
  WL_COUNT(lost);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const T middle = left[i] * inverse[i] * right[i];
    i64 found = is_lost(middle, inverse[i]);
    between[i] = middle;
    for (I e = lower_begin[i]; e < lower_end[i]; ++e) {
      const T made = lower[e] * (left[lower_indices[e]] / left[i]);
      found += is_lost(made, lower[e]);
      below[e] = made;
    }
    for (I e = upper_begin[i]; e < upper_end[i]; ++e) {
      const T made = upper[e] * (right[i] / right[upper_indices[e]]);
      found += is_lost(made, upper[e]);
      above[e] = made;
    }
    return found;
  }
};

} // namespace wl
