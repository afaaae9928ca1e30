// y = beta y, which a product does before it adds to y.
#pragma once

#include <algorithm>

#include "unified/types.hpp"

namespace wl {

// Rows [begin, end) of k columns; beta = 0 does not read y.
template <class T>
void scale_rows(mat<T> y, i64 k, T beta, i64 begin, i64 end) {
  if (beta == T(1) || begin >= end)
    return;
  if (beta == T(0) && y.ld == k) {
    std::fill(y.data + begin * k, y.data + end * k, T(0));
    return;
  }
  for (i64 i = begin; i < end; ++i)
    for (i64 c = 0; c < k; ++c)
      y(i, c) = beta == T(0) ? T(0) : beta * y(i, c);
}

} // namespace wl
