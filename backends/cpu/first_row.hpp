// Where a share of the work in rows begins.
#pragma once
#include "unified/types.hpp"

namespace wl {

// The first of m rows that has `work` or more before it, m if none has.
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
