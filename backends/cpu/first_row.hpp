// The first row of a share of the work.
#pragma once
#include "unified/types.hpp"

namespace wl {

// The first of m rows that has at least `work` before it; m if there is none.
template <class Before>
WL_DEVICE i64 first_row(i64 m, i64 work, const Before& before) {
  i64 low = 0, high = m;
  while (low < high) {
    const i64 middle = low + (high - low) / 2;
    if (before(middle) < work)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

} // namespace wl
