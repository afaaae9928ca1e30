// Whether a matrix looks like a discretized elliptic equation. See wollemi.core.operations.coarsen.
#pragma once
#include "unified/coarsen_rows.hpp"

namespace wl {

template <class T, class I>
struct coarsen_balanced {
  const I *begin, *end, *indices;
  const T* values;
  real_t<T> least, most;
  i64* balanced;
  WL_COUNT(balanced);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    using R = real_t<T>;
    R d(0), negative(0), positive(0);
    for (I e = begin[i]; e < end[i]; ++e) {
      const R a = real(values[e]);
      if (i64(indices[e]) == i)
        d += a;
      else if (a < R(0))
        negative -= a;
      else
        positive += a;
    }
    return of_sums(d, negative, positive) ? 1 : 0;
  }
  // Whether a row with this diagonal and these sums of its other entries is balanced.
  WL_DEVICE bool of_sums(real_t<T> d, real_t<T> negative, real_t<T> positive) const {
    using R = real_t<T>;
    const R s = negative - positive;
    const bool bound = d > R(0) && s >= rounded_product(least, d) && s <= rounded_product(most, d);
    return bound && positive + positive <= negative;
  }
};

} // namespace wl
