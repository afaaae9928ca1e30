// Incomplete factors with a pattern that the sweeps determine. See wollemi.core.operations.parilut.
#pragma once
#include "unified/spgemm.hpp"

namespace wl {

// v| with each product rounded, so that it is the same on all executors.
template <class R>
WL_DEVICE R rounded_size(R v) {
  return magnitude(v);
}
template <class R>
WL_DEVICE R rounded_size(complex<R> v) {
  const R x = magnitude(v.re), y = magnitude(v.im), big = x > y ? x : y, small = x > y ? y : x;
  if (!(x == x) || !(y == y))
    return x + y;
  if (big == R(0) || big - big != R(0))
    return big;
  const R q = small / big;
  return big * square_root(R(1) + rounded_product(q, q));
}

// Integers with the order of the sizes: their bits. NaN is above all numbers.
WL_DEVICE i64 key_of(float size) {
  return size > 0 ? i64(__builtin_bit_cast(i32, size)) : size == size ? 0 : i64(0x7fc00000);
}
WL_DEVICE i64 key_of(double size) {
  return size > 0 ? __builtin_bit_cast(i64, size) : size == size ? 0 : 0x7ff8000000000000LL;
}

WL_DEVICE i64 hashed_place(i64 row, i64 column) { return hashed(hashed(row) + column); }

template <class T, class I>
struct parilut_scaling {
  const I *begin, *end, *indices;
  const T* values;
  T *scale, *phase;
  i64* bad;
  WL_COUNT(bad);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    T d(0);
    i64 found = 0;
    for (I e = begin[i]; e < end[i]; ++e) {
      found += !finite(values[e]);
      if (i64(indices[e]) == i)
        d = values[e];
    }
    const real_t<T> size = rounded_size(d);
    const bool usable = size > real_t<T>(0);
    scale[i] = usable ? T(real_t<T>(1) / square_root(size)) : T(1);
    phase[i] = usable ? d / size : T(1);
    return found;
  }
};

template <class T, class I>
struct parilut_measure {
  const I *begin, *end, *indices;
  const T* values;
  real_t<T> drop;
  T* d;
  real_t<T>* least;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    T own(0);
    real_t<T> squares(0);
    for (I e = begin[i]; e < end[i]; ++e) {
      const real_t<T> size = rounded_size(values[e]);
      squares += rounded_product(size, size);
      if (i64(indices[e]) == i)
        own = values[e];
    }
    d[i] = own;
    least[i] = drop * square_root(squares);
    return {};
  }
};

template <class T>
struct parilut_shifted {
  const T *d, *phase;
  real_t<T> shift;
  T *a, *inverse;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const T value = d[i] + rounded_product(T(shift), phase[i]);
    a[i] = value;
    inverse[i] = T(1) / value;
    return {};
  }
};

template <class T, class I>
struct parilut_scale_columns {
  const I* indices;
  const T *values, *d;
  real_t<T> sign;
  i64 conjugated;
  T* result;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 e, i64, const column_state&) const {
    const T value = rounded_product(T(sign), rounded_product(values[e], d[indices[e]]));
    result[e] = conjugated ? conj(value) : value;
    return {};
  }
};

template <class T>
struct parilut_unfit {
  const T* values;
  real_t<T> smallest, largest;
  i64 of_real;
  i64* count;
  WL_COUNT(count);

  WL_DEVICE sum operator()(i64 e, i64, const column_state&) const {
    const real_t<T> size = rounded_size(values[e]);
    return !(size < largest) || !((of_real ? real(values[e]) : size) > smallest);
  }
};

template <class T>
struct parilut_moved {
  const T *values, *before;
  real_t<T> limit;
  i64* count;
  WL_COUNT(count);

  WL_DEVICE sum operator()(i64 e, i64, const column_state&) const {
    return !(rounded_size(values[e] - before[e]) <= limit);
  }
};

// Calls use(column, x, has, a, has, p, has) for the columns below `row` of three sorted rows, in
// increasing order: x, a and p are the entries of this column if the rows have them.
template <class I, class Use>
WL_DEVICE void for_any_below(i64 row, I x, I x_end, const I* x_indices, I a, I a_end,
                             const I* a_indices, I p, I p_end, const I* p_indices, Use&& use) {
  for (;;) {
    const i64 of_x = x < x_end ? i64(x_indices[x]) : row;
    const i64 of_a = a < a_end ? i64(a_indices[a]) : row;
    const i64 of_p = p < p_end ? i64(p_indices[p]) : row;
    i64 column = of_x < of_a ? of_x : of_a;
    column = of_p < column ? of_p : column;
    if (column >= row)
      return;
    use(I(column), x, of_x == column, a, of_a == column, p, of_p == column);
    x += of_x == column, a += of_a == column, p += of_p == column;
  }
}

template <class I>
struct parilut_count_candidates {
  const I *begin, *end, *indices, *a_begin, *a_end, *a_indices, *p_begin, *p_end, *p_indices;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I count = 0;
    for_any_below(i, begin[i], end[i], indices, a_begin[i], a_end[i], a_indices, p_begin[i],
                  p_end[i], p_indices, [&](I, I, bool, I, bool, I, bool) { ++count; });
    return lengths[i] = count;
  }
};

template <class T, class I>
struct parilut_candidates {
  const I *begin, *end, *indices;
  const T* values;
  const I *a_begin, *a_end, *a_indices;
  const T* a_values;
  const I *p_begin, *p_end, *p_indices;
  const T* p_values;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    for_any_below(i, begin[i], end[i], indices, a_begin[i], a_end[i], a_indices, p_begin[i],
                  p_end[i], p_indices, [&](I column, I x, bool is, I a, bool in_a, I p, bool in_p) {
                    T value = is ? values[x] : in_a ? a_values[a] : T(0);
                    if (!is && in_p)
                      value -= p_values[p];
                    new_indices[to] = column;
                    new_values[to++] = value;
                  });
    return {};
  }
};

// value - sum_k x_ik y_jk inverse_k over the columns that two sorted rows share.
template <class T, class I>
WL_DEVICE T less_products(T value, I x, I x_end, const I* indices, const T* values, I y, I y_end,
                          const I* other_indices, const T* other, const T* inverse,
                          bool conjugated) {
  while (x < x_end && y < y_end) {
    const I left = indices[x], right = other_indices[y];
    if (left == right) {
      const T factor = conjugated ? conj(other[y]) : other[y];
      value -= rounded_product(rounded_product(values[x], factor), inverse[left]);
    }
    x += left <= right;
    y += right <= left;
  }
  return value;
}

// One entry, computed from the previous sweep: all entries are independent. The preceding entries
// of its row have smaller columns.
template <class T, class I>
struct parilut_sweep {
  const I *rows, *indices, *indptr;
  const T* x;
  const I *other_indptr, *other_indices;
  const T *other, *inverse;
  const I *a_indptr, *a_indices;
  const T* a;
  i64 conjugated;
  T* next;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 e, i64, const column_state&) const {
    const I i = rows[e], j = indices[e], a_end = a_indptr[i + 1];
    const I at = not_below(a_indptr[i], a_end, a_indices, i64(j));
    const T value = at < a_end && a_indices[at] == j ? a[at] : T(0);
    next[e] = less_products(value, indptr[i], I(e), indices, x, other_indptr[j],
                            other_indptr[j + 1], other_indices, other, inverse, conjugated != 0);
    return {};
  }
};

template <class T, class I>
struct parilut_pivots {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_begin, *other_end, *other_indices;
  const T *other, *a, *inverse;
  i64 conjugated;
  T *d, *next;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const T value = less_products(a[i], begin[i], end[i], indices, values, other_begin[i],
                                  other_end[i], other_indices, other, inverse, conjugated != 0);
    d[i] = conjugated ? T(real(value)) : value;
    next[i] = T(1) / d[i];
    return {};
  }
};

// The number of keys that reach each of seven bounds.
struct reaching {
  i64 count[7];
  WL_DEVICE reaching& operator+=(const reaching& o) {
    for (int d = 0; d < 7; ++d)
      count[d] += o.count[d];
    return *this;
  }
};

template <class T, class I>
struct parilut_narrow {
  const I *rows, *indices;
  const T* values;
  const i64* tie;
  i64 shift, rank;
  i64 *low, *reached, *above;
  WL_SUM(reaching);

  WL_DEVICE sum operator()(i64 e, i64, const column_state&) const {
    i64 key = key_of(rounded_size(values[e]));
    if (*tie >= 0)
      key = key == *tie ? hashed_place(rows[e], indices[e]) : -1;
    const i64 beyond = key - *low;
    sum found{};
    for (int d = 0; d < 7; ++d)
      found.count[d] = beyond >= (i64(d + 1) << shift);
    return found;
  }
  WL_DEVICE void finish(i64, const sum& s) const {
    int digit = 7;
    while (digit > 0 && s.count[digit - 1] < rank)
      --digit;
    *low += i64(digit) << shift;
    if (digit > 0)
      *reached = s.count[digit - 1];
    if (digit < 7)
      *above = s.count[digit];
  }
};

// Which entries of a row stay in the factor.
template <class T, class I>
struct large_entries {
  const I *begin, *end, *indices;
  const T* values;
  const real_t<T>* least;
  i64 of_column;
  const i64 *low, *tie;

  template <class Use>
  WL_DEVICE void each(i64 i, Use&& use) const {
    for (I e = begin[i]; e < end[i]; ++e) {
      const T value = values[e];
      const I j = indices[e];
      const real_t<T> size = rounded_size(value);
      const i64 key = key_of(size);
      if (value != T(0) && !(size < least[of_column ? i64(j) : i]) &&
          (key > *low || (key == *low && hashed_place(i, j) >= *tie)))
        use(e, j, value);
    }
  }
};

template <class T, class I>
struct parilut_count_large {
  const I *begin, *end, *indices;
  const T* values;
  const real_t<T>* least;
  i64 of_column;
  const i64 *low, *tie;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I count = 0;
    const large_entries<T, I> entries{begin, end, indices, values, least, of_column, low, tie};
    entries.each(i, [&](I, I, T) { ++count; });
    return lengths[i] = count;
  }
};

template <class T, class I>
struct parilut_large {
  const I *begin, *end, *indices;
  const T* values;
  const real_t<T>* least;
  i64 of_column;
  const i64 *low, *tie;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    const large_entries<T, I> entries{begin, end, indices, values, least, of_column, low, tie};
    entries.each(i, [&](I, I j, T value) {
      new_indices[to] = j;
      new_values[to++] = value;
    });
    return {};
  }
};

} // namespace wl
