// Rows of consecutive columns. See wollemi.core.operations.masks.
#pragma once
#include "unified/step.hpp"

namespace wl {

template <class T, class I>
struct mask_sums {
  static constexpr I kPart = 64;
  const I *first, *last;
  mat<const T> x;
  mat<T> y;
  T alpha, beta;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    // Sums of parts: a single running sum of a row of thousands of columns would round at each
    // addition.
    T found(0);
    for (I j = first[i]; j < last[i];) {
      const I stop = last[i] - j > kPart ? I(j + kPart) : last[i];
      T part(0);
      for (; j < stop; ++j)
        part += x(j, c);
      found += part;
    }
    store(y(i, c), found, alpha, beta);
    return {};
  }
};

} // namespace wl
