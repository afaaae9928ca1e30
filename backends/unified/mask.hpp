// Rows of consecutive columns. See wollemi.core.operations.masks.
#pragma once
#include "step.hpp"

namespace wl {

template <class T, class I>
struct mask_sums {
  const I *first, *last;
  mat<const T> x;
  mat<T> y;
  T alpha, beta;
  using sum = none;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    T found(0);
    for (I j = first[i]; j < last[i]; ++j)
      found += x(j, c);
    store(y(i, c), found, alpha, beta);
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

} // namespace wl
