// The lengths of rows in a few numbers.
#pragma once

#include <algorithm>

#include "unified/types.hpp"

namespace wl {

// The sum of squares, the largest length, and the number of rows with entries.
struct RowLengths {
  i64 squares = 0, longest = 0, filled = 0;

  void add(const RowLengths& other) {
    squares += other.squares;
    longest = std::max(longest, other.longest);
    filled += other.filled;
  }
};

// The lengths of rows [begin, end). The squares of fewer than 2^31 entries have a sum below 2^62.
template <class I>
RowLengths row_lengths(const I* indptr, i64 begin, i64 end) {
  RowLengths found;
  for (i64 row = begin; row < end; ++row) {
    const i64 length = indptr[row + 1] - indptr[row];
    found.squares += length * length;
    found.longest = std::max(found.longest, length);
    found.filled += length != 0;
  }
  return found;
}

} // namespace wl
