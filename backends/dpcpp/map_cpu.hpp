// The launcher of functors on CPU devices: a work-group is the lanes of a vector register and has
// its own rows.
//
// The last work-group to finish adds up the sums of all work-groups, in their order: results repeat
// bit for bit.
#pragma once
#include "dpcpp/lanes_cpu.hpp"

namespace wl {

// Rows that all strips of columns visit while they are in the first-level cache; and rows that a
// lane adds up before it adds their sum to the earlier sums: when 50,000 squares in float32 were
// added up one by one, the last digit but one was wrong.
constexpr i64 TILE_ROWS = 64, SUMMED_ROWS = 512;

template <class F>
constexpr bool has_sum = !same<typename F::sum, none>::value;

// One column of contiguous rows: lane l has rows l, l + LANES, ...
template <class Strides, class F>
WL_DEVICE typename F::sum map_column(const F& functor, rows_of rows, i64 lane) {
  const auto state = functor.column(0);
  typename F::sum sum{};
  if (!state.active)
    return sum;
  F f = functor;
  Strides::set_unit(f);
  i64 i = rows.begin;
  for (; i + LANES <= rows.end; i += LANES)
    sum += f(i + lane, 0, state);
  if (i + lane < rows.end)
    sum += f(i + lane, 0, state);
  return sum;
}

// k <= LANES contiguous columns, read as one column of rows * k elements: lane l is always in
// column l % k, and lanes beyond the last whole row are idle.
template <class Strides, class F>
WL_DEVICE typename F::sum map_flat(const F& functor, rows_of rows, i64 k, i64 lane) {
  const i64 step = LANES / k * k;
  const auto state = functor.column(lane % k);
  typename F::sum sum{};
  if (lane >= step || !state.active)
    return sum;
  F f = functor;
  Strides::set_unit(f);
  const i64 end = rows.end * k;
  i64 e = rows.begin * k;
  for (; e + step <= end; e += step)
    sum += f(e + lane, 0, state);
  if (e + lane < end)
    sum += f(e + lane, 0, state);
  return sum;
}

// Any blocks: lane l has columns l, l + LANES, ...
template <class F>
WL_DEVICE void map_columns(const F& f, rows_of rows, i64 k, i64 lane, typename F::sum* sums) {
  for (i64 c = lane; has_sum<F> && c < k; c += LANES)
    sums[c] = typename F::sum{};
  const i64 tile = k <= LANES ? SUMMED_ROWS : TILE_ROWS;
  for (i64 begin = rows.begin; begin < rows.end; begin += tile) {
    const i64 end = begin + tile < rows.end ? begin + tile : rows.end;
    for (i64 first = 0; first < k; first += LANES) {
      const i64 c = first + lane;
      if (c >= k)
        continue;
      const auto state = f.column(c);
      if (!state.active)
        continue;
      typename F::sum sum{};
      for (i64 i = begin; i < end; ++i)
        sum += f(i, c, state);
      if constexpr (has_sum<F>)
        sums[c] += sum;
    }
  }
}

// Visits all elements, then finishes every active column. `partials` has a sum for each work-group
// and column, at least LANES of them. `Strides` knows the functor's blocks; see functors.py.
template <class Strides, class F>
WL_DEVICE void map(const item& it, const F& f, i64 n, i64 k, void* partials, i32* counter) {
  using S = typename F::sum;
  const rows_of rows(it, n);
  const i64 lane = own_lane();
  const bool one = k == 1 && Strides::have(f, 1);
  const bool flat = one || (!Strides::by_row && k <= LANES && Strides::have(f, k));
  // sums of a work-group; of column c they are c, c + k, ...
  const i64 width = k < LANES ? LANES : k;
  auto* const sums = static_cast<S*>(partials);
  auto* const mine = sums + it.block() * width;
  if (flat) {
    const S sum = one ? map_column<Strides>(f, rows, lane) : map_flat<Strides>(f, rows, k, lane);
    if constexpr (has_sum<F>)
      mine[lane] = sum;
  } else {
    map_columns(f, rows, k, lane, mine);
  }
  if constexpr (has_sum<F>) {
    fence();
    it.barrier();
    if (lane != 0 || fetch_add(counter, 1) != i32(it.blocks() - 1))
      return;
    *counter = 0;
    fence();
    const i64 of_column = flat ? LANES / k * k : k;
    for (i64 c = 0; c < k; ++c) {
      if (!f.column(c).active)
        continue;
      S total{};
      for (i64 b = 0; b < it.blocks(); ++b)
        for (i64 l = c; l < of_column; l += k)
          total += sums[b * width + l];
      f.finish(c, total);
    }
  }
}

} // namespace wl
