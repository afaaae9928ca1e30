// Incomplete factorization by fixed-point sweeps. See wollemi.core.operations.parilu.
#pragma once
#include "unified/status.hpp"

namespace wl {

// One entry of the factors, computed from the entries of the previous sweep: all entries are
// independent.
template <class T, class I>
struct parilu_sweep {
  const I *indptr, *indices, *rows, *columns, *entries, *diagonal;
  mat<const T> a, v;
  mat<T> next;
  real_t<T>* change;
  WL_SUM(real_t<T>);

  WL_DEVICE sum operator()(i64 e, i64 c, const column_state&) const {
    const I i = rows[e], j = indices[e];
    const I bound = i < j ? i : j;
    T value = a(e, c);
    // Row i of the lower factor is multiplied by column j of the upper factor: both are sorted.
    I x = indptr[i], y = columns[j];
    I left = indices[x], below = rows[entries[y]];
    while (left < bound && below < bound) {
      if (left == below)
        value -= v(x, c) * v(entries[y], c);
      const bool next_left = left <= below, next_below = below <= left;
      if (next_left)
        left = indices[++x];
      if (next_below)
        below = rows[entries[++y]];
    }
    if (i > j)
      value = value / v(diagonal[j], c);
    next(e, c) = value;
    return square(value - v(e, c));
  }
  WL_DEVICE void finish(i64 c, sum s) const { change[c] = square_root(s); }
};

} // namespace wl
