// The order of a few columns: for each column the number of columns that precede it.
//
// A group of columns has a vector type, since the driver's SYCL compiler does not vectorize loops:
// products of sparse matrices take 0.7 to 0.85 of the time that they take with a loop. The vector
// is as wide as a register: with wider ones the code of g++ takes 3 to 20 times as long.
#pragma once
#include "cpu/arithmetic.hpp"

namespace wl {

// The largest number of columns that are sorted by counting.
constexpr i64 RANKED = 64;

// The number of columns that are read together: the array has this number of elements after the
// last column.
constexpr int RANKED_TOGETHER = 16;

template <class I>
struct ranked {
  static constexpr int together = VECTOR_BYTES / sizeof(I);
  static_assert(together <= RANKED_TOGETHER, "columns have padding behind them");
  typedef I group __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(I)), may_alias));
};

// Writes how many of `count` different columns are smaller than each of them.
template <class I>
WL_DEVICE void rank(const I* columns, i64 count, I* places) {
  using group = typename ranked<I>::group;
  for (i64 first = 0; first < count; first += ranked<I>::together) {
    const group mine = *reinterpret_cast<const group*>(columns + first);
    group smaller = {};
    for (i64 other = 0; other < count; ++other)
      smaller -= columns[other] < mine;
    *reinterpret_cast<group*>(places + first) = smaller;
  }
}

// The number of columns that two rows share; no row has a column twice. Reads no column behind a
// row.
template <class I>
WL_DEVICE i64 common_columns(const I* columns, i64 count, const I* others, i64 other_count) {
  using group = typename ranked<I>::group;
  constexpr int together = ranked<I>::together;
  i64 common = 0;
  for (i64 first = 0; first < count; first += together) {
    I own[together];
    for (int lane = 0; lane < together; ++lane)
      own[lane] = first + lane < count ? columns[first + lane] : I(-1);
    const group mine = *reinterpret_cast<const group*>(own);
    group found = {};
    for (i64 other = 0; other < other_count; ++other)
      found -= mine == others[other];
    I lanes[together];
    *reinterpret_cast<group*>(lanes) = found;
    for (int lane = 0; lane < together; ++lane)
      common += lanes[lane];
  }
  return common;
}

// As rank, where columns may be equal: equal ones keep their order.
template <class I>
WL_DEVICE void rank_in_turn(const I* columns, i64 count, I* places) {
  using group = typename ranked<I>::group;
  group numbers;
  for (int lane = 0; lane < ranked<I>::together; ++lane)
    numbers[lane] = I(lane);
  for (i64 first = 0; first < count; first += ranked<I>::together) {
    const group mine = *reinterpret_cast<const group*>(columns + first);
    group before = {};
    for (i64 other = 0; other < count; ++other) {
      const I column = columns[other];
      before -= (column < mine) | ((column == mine) & (I(other) < numbers));
    }
    *reinterpret_cast<group*>(places + first) = before;
    numbers += I(ranked<I>::together);
  }
}

} // namespace wl
