// The launcher of functors on backends with waves and blocks: NVRTC, HIPRTC, SYCL, and their
// emulation.
//
// A sum is computed in a fixed order: within the work-items, within the block, and finally over all
// blocks in their order, by the block that finishes last. So results repeat bit for bit as long as
// the grid is the same.
#pragma once
#include "simt/lanes.hpp"

namespace wl {

template <class F>
constexpr bool has_sum = !same<typename F::sum, none>::value;

// Adds up the partial results of the work-items of all blocks, and finishes the single column.
template <class F>
WL_DEVICE void close_column(const item& it, const F& f, typename F::sum sum, void* scratch,
                            i32* counter) {
  if constexpr (has_sum<F>) {
    using S = typename F::sum;
    auto* const partials = static_cast<S*>(scratch);
    sum = sum_of_block(it, sum);
    if (it.thread() == 0)
      partials[it.block()] = sum;
    if (!is_last_block(it, counter))
      return;
    S total{};
#pragma unroll 4
    for (i64 b = it.thread(); b < it.blocks(); b += WL_BLOCK)
      total += partials[b];
    total = sum_of_block(it, total);
    if (it.thread() == 0)
      f.finish(0, total);
  }
}

// One column. Rows are assigned to work-items in turn; without waves each work-item gets one
// contiguous piece of the rows.
template <class F>
WL_DEVICE void map_column(const item& it, const F& f, i64 n, void* partials, i32* counter) {
  const auto state = f.column(0);
  // The status is equal in all blocks: it changes only after all of them have arrived.
  if (!state.active)
    return;
  typename F::sum sum{};
  if constexpr (WL_BLOCK == 1) {
    const i64 begin = n * it.block() / it.blocks(), end = n * (it.block() + 1) / it.blocks();
    for (i64 i = begin; i < end; ++i)
      sum += f(i, 0, state);
  } else {
    const i64 step = it.blocks() * WL_BLOCK;
// Each row is written immediately, so that loads of later rows could not be issued earlier anyway.
// Unrolling takes registers and thus reduces the number of resident blocks, and so the loads in
// flight.
#pragma unroll 1
    for (i64 i = it.block() * WL_BLOCK + it.thread(); i < n; i += step)
      sum += f(i, 0, state);
  }
  close_column(it, f, sum, partials, counter);
}

// The work-items of a block as a tile of rows and columns, columns first, so that adjacent
// work-items read adjacent elements.
struct tile {
  i64 width; // columns
  int rows;
  int row, column;
  bool inside;

  WL_DEVICE tile(const item& it, i64 k)
      : width(k < WL_BLOCK ? k : WL_BLOCK), rows(int(WL_BLOCK / width)),
        row(it.thread() / int(width)), column(it.thread() % int(width)), inside(row < rows) {}

  // The number of adjacent tiles that cover k columns.
  WL_DEVICE i64 across(i64 k) const { return (k + width - 1) / width; }

  // The sum of each column of the tile, returned to the first row of the tile.
  template <class S>
  WL_DEVICE S sum_down(const item& it, S value) const {
    WL_SHARED(S, cells, WL_BLOCK);
    it.barrier();
    cells[it.thread()] = value;
    it.barrier();
    int half = 1;
    while (half < rows)
      half *= 2;
    for (half /= 2; half > 0; half /= 2) {
      if (row < half && row + half < rows)
        cells[it.thread()] += cells[it.thread() + half * width];
      it.barrier();
    }
    return cells[it.thread()];
  }
};

// Several columns. The number of blocks is a multiple of the number of adjacent tiles.
template <class F>
WL_DEVICE void map_columns(const item& it, const F& f, i64 n, i64 k, typename F::sum* partials,
                           i32* counter) {
  using S = typename F::sum;
  const tile t(it, k);
  const i64 across = t.across(k), groups = it.blocks() / across, group = it.block() / across;
  {
    const i64 c = it.block() % across * t.width + t.column;
    const auto state = f.column(c < k ? c : 0);
    S sum{};
    if (t.inside && c < k && state.active)
#pragma unroll 1
      for (i64 i = group * t.rows + t.row; i < n; i += groups * t.rows)
        sum += f(i, c, state);
    if constexpr (has_sum<F>) {
      sum = t.sum_down(it, sum);
      if (t.row == 0 && c < k)
        partials[group * k + c] = sum;
    }
  }
  if constexpr (has_sum<F>) {
    if (!is_last_block(it, counter))
      return;
    for (i64 chunk = 0; chunk < across; ++chunk) {
      const i64 c = chunk * t.width + t.column;
      S total{};
      if (t.inside && c < k)
        for (i64 g = t.row; g < groups; g += t.rows)
          total += partials[g * k + c];
      total = t.sum_down(it, total);
      if (t.row == 0 && c < k && f.column(c).active)
        f.finish(c, total);
    }
  }
}

// Visits all elements, then finishes every active column. `partials` holds one sum per column and
// group of blocks. A functor without a sum has no last step.
template <class F>
WL_DEVICE void map(const item& it, const F& f, i64 n, i64 k, void* partials, i32* counter) {
  if (k == 1)
    map_column(it, f, n, partials, counter);
  else
    map_columns(it, f, n, k, static_cast<typename F::sum*>(partials), counter);
}

} // namespace wl
