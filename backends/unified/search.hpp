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

// The same for a column that may be anywhere, such as one that a caller asks for: the host
// mispredicts every second branch of the search above.
template <class I>
WL_DEVICE I not_below_anywhere(I begin, I end, const I* indices, I bound) {
  for (I count = end - begin; count > 0;) {
    const I half = (count + 1) / 2;
    begin += half & -I(indices[begin + half - 1] < bound);
    count -= half;
  }
  return begin;
}

} // namespace wl
