// Properties of a matrix that are determined before a system with it is solved. See
// wollemi.core.operations.facts.
#pragma once
#include "unified/search.hpp"
#include "unified/status.hpp"

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
  WL_SUM(diagonal_counts);

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

// The number of values that are equal to the first one.
template <class T>
struct facts_repeated {
  const T* d;
  i64* equal;
  WL_COUNT(equal);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const { return d[i] == d[0] ? 1 : 0; }
};

struct symmetry_counts {
  // The number of entries that do not follow the preceding entry of their row, the number of lower
  // entries that differ from their mirror image, and the number of upper entries minus the number
  // of lower ones.
  i64 disorder, mismatch, surplus;
  WL_DEVICE symmetry_counts& operator+=(symmetry_counts o) {
    disorder += o.disorder, mismatch += o.mismatch, surplus += o.surplus;
    return *this;
  }
};

template <class T>
WL_DEVICE bool is_mirrored(T a, T b) {
  const real_t<T> slack = 8 * epsilon<T>;
  return magnitude(a - conj(b)) <= slack * (magnitude(a) + magnitude(b));
}

// An entry below the diagonal searches for its mirror image; if all are found and the counts are
// equal, the pattern is symmetric. Stored zeros count as absent.
template <class T, class I>
struct facts_symmetry {
  mat<const T> data;
  const I *indices, *indptr;
  i64 rows;
  i64 *disorder, *mismatch;
  WL_SUM(symmetry_counts);

  WL_DEVICE sum operator()(i64 e, i64 c, const column_state&) const {
    const i64 row = row_of(e), at = indices[e];
    const T value = data(e, c);
    sum found{};
    if (e + 1 < i64(indptr[row + 1]))
      found.disorder = i64(indices[e + 1]) <= at;
    if (at == row)
      found.mismatch = !is_mirrored(value, value);
    else if (value != T(0)) {
      found.surplus = at > row ? 1 : -1;
      if (at < row) {
        const I beyond = indptr[at + 1], image = not_below(indptr[at], beyond, indices, row);
        found.mismatch =
            image == beyond || i64(indices[image]) != row || !is_mirrored(value, data(image, c));
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
};

struct mirror_counts {
  // The number of lower entries that differ from their mirror image, and the number of upper
  // entries minus the number of lower ones.
  i64 mismatch, surplus;
  WL_DEVICE mirror_counts& operator+=(mirror_counts o) {
    return mismatch += o.mismatch, surplus += o.surplus, *this;
  }
};

// The same test row by row: no entry has to search for its row.
template <class T, class I>
struct facts_mirrored {
  const I *begin, *end, *indices;
  const T* values;
  i64* mismatch;
  WL_SUM(mirror_counts);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    sum found{};
    for (I e = begin[i]; e < end[i]; ++e) {
      const i64 j = indices[e];
      const T value = values[e];
      if (j == i)
        found.mismatch += !is_mirrored(value, value);
      else if (value != T(0)) {
        found.surplus += j > i ? 1 : -1;
        found.mismatch += j < i && !has_image(value, begin[j], end[j], i);
      }
    }
    return found;
  }
  WL_DEVICE void finish(i64, sum s) const {
    *mismatch = s.mismatch + (s.surplus < 0 ? -s.surplus : s.surplus);
  }

private:
  WL_DEVICE bool has_image(T value, I from, I beyond, i64 column) const {
    const I place = not_below(from, beyond, indices, column);
    return place < beyond && i64(indices[place]) == column && is_mirrored(value, values[place]);
  }
};

// The smallest and the largest of several indices; zeroed memory means that there are none.
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
  WL_SUM(index_bounds);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return {i64(indices[i]), i64(indices[i]), 1};
  }
  WL_DEVICE void finish(i64, sum s) const { *low = s.low, *high = s.some ? s.high : -1; }
};

} // namespace wl
