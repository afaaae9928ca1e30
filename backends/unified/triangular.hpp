// Solves with triangular matrices, row by row. See wollemi.core.operations.triangular.
#pragma once
#include "unified/status.hpp"

namespace wl {

// Row i of x, computed from the rows on which it depends.
template <class T, class I>
WL_DEVICE void substitute_row(const I* indptr, const I* indices, const T* data, const T* inverse,
                              T factor, i64 upper, mat<T> x, i64 i, i64 c) {
  T sum(0);
  for (i64 e = indptr[i]; e < indptr[i + 1]; ++e) {
    const i64 j = indices[e];
    if (upper ? j > i : j < i)
      sum += data[e] * x(j, c);
  }
  x(i, c) = inverse[i] * (x(i, c) + factor * sum);
}

template <class T, class I>
struct triangular_level {
  const I *rows, *indptr, *indices;
  const T *data, *inverse;
  T factor;
  i64 upper;
  mat<T> x;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 t, i64 c, const column_state&) const {
    substitute_row(indptr, indices, data, inverse, factor, upper, x, rows[t], c);
    return {};
  }
};

} // namespace wl
