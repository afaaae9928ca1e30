// What is found out about a matrix before a system with it is solved. See
// wollemi.core.operations.facts.
#pragma once
#include "status.hpp"

namespace wl {

struct diagonal_counts {
  i64 replaced, positive;
  WL_DEVICE diagonal_counts& operator+=(diagonal_counts o) {
    return replaced += o.replaced, positive += o.positive, *this;
  }
};

template <class T>
struct facts_diagonal {
  mat<const T> d;
  mat<T> inverse;
  T replacement;
  i64 *replaced, *positive;
  using sum = diagonal_counts;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T value = d(i, c), inverted = T(1) / value;
    const bool usable = finite(value) && finite(inverted);
    inverse(i, c) = usable ? inverted : replacement;
    return {usable ? 0 : 1, real(value) > real_t<T>(0) ? 1 : 0};
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    replaced[c] = s.replaced;
    positive[c] = s.positive;
  }
};

struct symmetry_counts {
  // Entries that do not follow the one before them in their row, lower entries that differ from
  // their mirror image, and upper entries less lower ones.
  i64 disorder, mismatch, surplus;
  WL_DEVICE symmetry_counts& operator+=(symmetry_counts o) {
    disorder += o.disorder, mismatch += o.mismatch, surplus += o.surplus;
    return *this;
  }
};

// An entry below the diagonal looks for its mirror image; those above are as many as those below
// if none is left over. Zeros are as good as missing.
template <class T, class I>
struct facts_symmetry {
  mat<const T> data;
  const I *indices, *indptr;
  i64 rows;
  i64 *disorder, *mismatch;
  using sum = symmetry_counts;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 e, i64 c, const column_state&) const {
    const i64 row = row_of(e), at = indices[e];
    const T value = data(e, c);
    sum found{};
    if (e + 1 < i64(indptr[row + 1]))
      found.disorder = i64(indices[e + 1]) <= at;
    if (at == row)
      found.mismatch = !mirrored(value, value);
    else if (value != T(0)) {
      found.surplus = at > row ? 1 : -1;
      if (at < row) {
        const i64 image = first_not_below(at, row);
        found.mismatch = image == i64(indptr[at + 1]) || i64(indices[image]) != row ||
                         !mirrored(value, data(image, c));
      }
    }
    return found;
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    disorder[c] = s.disorder;
    mismatch[c] = s.disorder ? -1 : s.mismatch + (s.surplus < 0 ? -s.surplus : s.surplus);
  }

private:
  WL_DEVICE i64 row_of(i64 e) const {
    i64 row = 0, beyond = rows;
    while (beyond - row > 1) {
      const i64 middle = row + (beyond - row) / 2;
      if (i64(indptr[middle]) <= e)
        row = middle;
      else
        beyond = middle;
    }
    return row;
  }
  WL_DEVICE i64 first_not_below(i64 of_row, i64 column) const {
    i64 begin = indptr[of_row], end = indptr[of_row + 1];
    while (begin < end) {
      const i64 middle = begin + (end - begin) / 2;
      if (i64(indices[middle]) < column)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }
  WL_DEVICE static bool mirrored(T a, T b) {
    const real_t<T> slack = 8 * epsilon<T>;
    return magnitude(a - conj(b)) <= slack * (magnitude(a) + magnitude(b));
  }
};

// The smallest and the largest of some indices, if there are any: zeroed memory stands for none.
struct index_bounds {
  i64 low, high, some;
  WL_DEVICE index_bounds& operator+=(index_bounds o) {
    if (o.some) {
      low = some && low < o.low ? low : o.low;
      high = some && high > o.high ? high : o.high;
      some = 1;
    }
    return *this;
  }
};

template <class I>
struct facts_bounds {
  const I* indices;
  i64 *low, *high;
  using sum = index_bounds;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return {i64(indices[i]), i64(indices[i]), 1};
  }
  WL_DEVICE void finish(i64, sum s) const { *low = s.low, *high = s.some ? s.high : -1; }
};

} // namespace wl
