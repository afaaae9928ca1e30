// Substitution by levels in one block. See wollemi.core.operations.triangular.
#pragma once
#include "simt/lanes.hpp"
#include "unified/triangular.hpp"

namespace wl {

// The work-items of the block synchronize after each level. For narrow levels that takes less time
// than a launch for each level.
template <class T, class I>
WL_DEVICE void triangular_substitute(const item& it, i64 levels, i64 k, const I* rows,
                                     const I* bounds, const I* indptr, const I* indices,
                                     const T* data, const T* inverse, T factor, i64 upper,
                                     mat<T> x) {
  for (i64 l = 0; l < levels; ++l) {
    const i64 begin = bounds[l], count = (bounds[l + 1] - begin) * k;
    for (i64 t = it.thread(); t < count; t += WL_BLOCK)
      substitute_row(indptr, indices, data, inverse, factor, upper, x, rows[begin + t / k], t % k);
    it.barrier();
  }
}

} // namespace wl
