// The set-up of algebraic multigrid: strength, coarse rows and interpolation. See
// wollemi.core.operations.coarsen.
#pragma once
#include "unified/aggregates.hpp"
#include "unified/balanced.hpp"
#include "unified/coarsen_rows.hpp"
#include "unified/largest.hpp"

namespace wl {

template <class T, class I>
struct coarsen_absolute_sums {
  const I *begin, *end;
  const T* values;
  real_t<T>* y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return y[i] = matrix_rows<T, I>{begin, end, nullptr, values}.size(i), sum{};
  }
};

template <class T, class I>
struct coarsen_invert_sums {
  const I *begin, *end, *indices;
  const T* values;
  T* inverse;
  i64* bad;
  WL_COUNT(bad);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const matrix_rows<T, I> rows{begin, end, indices, values};
    const real_t<T> size = rows.size(i), inverted = real_t<T>(1) / size;
    const T d = rows.diagonal(i);
    const bool usable =
        size > real_t<T>(0) && finite(size) && finite(inverted) && finite(magnitude(d));
    inverse[i] = usable ? conjugate_sign(d) * T(inverted) : T(0);
    return usable ? 0 : 1;
  }
};

template <class T, class I>
struct coarsen_radius {
  const I *begin, *end, *indices;
  const T* values;
  real_t<T>* y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const matrix_rows<T, I> rows{begin, end, indices, values};
    const real_t<T> d = size_of(rows.diagonal(i));
    return y[i] = d > real_t<T>(0) ? rows.size(i) / d : real_t<T>(0), sum{};
  }
};

template <class T>
struct coarsen_start {
  i64 first;
  T* x;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    using R = real_t<T>;
    return x[i] = T(R(hashed(first + i)) / R(2147483648.0) - R(1)), sum{};
  }
};

template <class T, class I>
struct coarsen_power {
  const I *begin, *end, *indices;
  const T *values, *x;
  T* y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    T total(0), d(0);
    for (I e = begin[i]; e < end[i]; ++e) {
      total += rounded_product(values[e], x[indices[e]]);
      if (i64(indices[e]) == i)
        d += values[e];
    }
    return y[i] = d != T(0) ? total / d : T(0), sum{};
  }
};

template <class T, class I>
struct coarsen_count_strong {
  const I *begin, *end, *indices;
  const T* values;
  real_t<T> theta;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I count = 0;
    matrix_rows<T, I>{begin, end, indices, values}.for_strong(i, theta, [&](I) { ++count; });
    return lengths[i] = count;
  }
};

template <class T, class I>
struct coarsen_strong {
  const I *begin, *end, *indices;
  const T* values;
  real_t<T> theta;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    matrix_rows<T, I>{begin, end, indices, values}.for_strong(i, theta, [&](I e) {
      new_indices[to] = indices[e];
      new_values[to++] = values[e];
    });
    return {};
  }
};

// ---- coarse and fine rows

template <class I>
struct coarsen_rank {
  const I *begin, *end;
  i64 first;
  i64* key;
  i32* state;
  i64* undecided;
  WL_COUNT(undecided);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const i64 length = end[i] - begin[i];
    key[i] = length * i64(4294967296) + hashed(first + i);
    state[i] = length > 0 ? 0 : -1;
    return length > 0 ? 1 : 0;
  }
};

template <class I>
struct coarsen_select {
  const I *begin, *end, *indices, *other_begin, *other_end, *other_indices;
  const i64* key;
  const i32* state;
  i32* next;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const bool first = state[i] == 0 && !beaten(i, begin[i], end[i], indices) &&
                       !beaten(i, other_begin[i], other_end[i], other_indices);
    return next[i] = first ? 1 : state[i], sum{};
  }

private:
  WL_DEVICE bool beaten(i64 i, I e, I beyond, const I* columns) const {
    for (; e < beyond; ++e)
      if (state[columns[e]] == 0 && key[columns[e]] > key[i])
        return true;
    return false;
  }
};

template <class I>
struct coarsen_reject {
  const I *begin, *end, *indices;
  const i32* state;
  i32* next;
  i64* undecided;
  WL_COUNT(undecided);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    i32 mine = state[i];
    if (mine == 0)
      for (I e = begin[i]; e < end[i]; ++e)
        if (state[indices[e]] == 1) {
          mine = -1;
          break;
        }
    next[i] = mine;
    return mine == 0 ? 1 : 0;
  }
};

template <class I>
struct coarsen_chosen {
  const i32* state;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return lengths[i] = state[i] == 1 ? 1 : 0;
  }
};

// ---- interpolation

template <class T, class I>
struct coarsen_count_nearest {
  const I *begin, *end, *indices;
  const T* values;
  const i32* state;
  const I* number;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I count = 1;
    if (state[i] != 1) {
      count = 0;
      for (I e = begin[i]; e < end[i]; ++e)
        count += state[indices[e]] == 1;
    }
    return lengths[i] = count;
  }
};

// Rounding leaves a sum of this relative size in a row with the exact sum zero.
template <class T>
constexpr real_t<T> rounding_of_rows = sizeof(real_t<T>) == 4 ? real_t<T>(1e-5) : real_t<T>(1e-8);

template <class T, class I>
struct coarsen_nearest {
  const I *begin, *end, *indices;
  const T* values;
  const i32* state;
  const I *number, *target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    if (state[i] == 1) {
      new_indices[to] = number[i];
      new_values[to] = T(1);
      return {};
    }
    T total(0);
    real_t<T> size(0);
    for (I e = begin[i]; e < end[i]; ++e)
      if (state[indices[e]] == 1) {
        total += values[e];
        size += size_of(values[e]);
      }
    if (!(size_of(total) >= rounding_of_rows<T> * size))
      total = T(size); // couplings of both signs cancel
    for (I e = begin[i]; e < end[i]; ++e)
      if (state[indices[e]] == 1) {
        new_indices[to] = number[indices[e]];
        new_values[to++] = values[e] / total;
      }
    return {};
  }
};

// Calls keep(entry) for the strong columns of a row that interpolate, and drop(entry) for all other
// entries. Strong columns come in the order of the row.
template <class I, class Keep, class Drop>
WL_DEVICE void for_interpolating(I e, I end, const I* indices, I s, I strong_end,
                                 const I* strong_indices, const I* near, Keep&& keep, Drop&& drop) {
  for (; e < end; ++e) {
    const I j = indices[e];
    const bool is_strong = s < strong_end && strong_indices[s] == j;
    s += is_strong;
    if (is_strong && near[j] < near[j + 1])
      keep(e);
    else
      drop(e);
  }
}

template <class T, class I>
struct coarsen_count_weights {
  const I *begin, *end, *indices;
  const T* values;
  const I *strong_begin, *strong_end, *strong_indices;
  const i32* state;
  const I* near;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I count = 1;
    if (state[i] != 1) {
      count = 0;
      for_interpolating(
          begin[i], end[i], indices, strong_begin[i], strong_end[i], strong_indices, near,
          [&](I) { ++count; }, [](I) {});
    }
    return lengths[i] = count;
  }
};

template <class T, class I>
struct coarsen_weights {
  const I *begin, *end, *indices;
  const T* values;
  const I *strong_begin, *strong_end, *strong_indices;
  const i32* state;
  const I *near, *target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    if (state[i] == 1) {
      new_indices[to] = I(i);
      new_values[to] = T(1);
      return {};
    }
    T divisor(0), diagonal(0);
    real_t<T> largest(0);
    for_interpolating(
        begin[i], end[i], indices, strong_begin[i], strong_end[i], strong_indices, near,
        [&](I e) {
          new_indices[to] = indices[e];
          new_values[to++] = -values[e];
          largest = size_of(values[e]) > largest ? size_of(values[e]) : largest;
        },
        [&](I e) {
          divisor += values[e];
          if (i64(indices[e]) == i)
            diagonal = values[e];
        });
    if (!(size_of(divisor) >= rounding_of_rows<T> * size_of(diagonal)))
      divisor = diagonal;
    // a row with a negligible diagonal gets the interpolation 0: only smoothing corrects it
    const bool takes = size_of(divisor) >= rounding_of_rows<T> * largest && largest > real_t<T>(0);
    for (I at = target[i]; at < to; ++at)
      new_values[at] = takes ? new_values[at] / divisor : T(0);
    return {};
  }
};

} // namespace wl
