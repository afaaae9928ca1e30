// Search in a sorted row.
#pragma once
#include "unified/types.hpp"

namespace wl {

// The first entry of a sorted row with a column of at least a bound.
template <class I>
WL_DEVICE I not_below(I begin, I end, const I* indices, i64 bound) {
  while (begin < end) {
    const I middle = begin + (end - begin) / 2;
    if (i64(indices[middle]) < bound)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

} // namespace wl
