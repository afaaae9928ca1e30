// The launcher of functors on CPU devices: a work-group is one work-item with rows of its own.
//
// Sub-groups are emulated there at up to 300 times the cost, so no work-item speaks to another
// until the last one adds up what each of them found, in their order: results repeat bit for bit.
#pragma once
#include "lanes.hpp"

static_assert(WL_BLOCK == 1, "this is for work-groups of one");

namespace wl {

template <class F>
constexpr bool has_sum = !same<typename F::sum, none>::value;

// A sum is kept in so many independent parts, which fill vector registers: the compiler may not
// reorder one.
constexpr int LANES = 16;

// Rows that all strips of columns visit while they are in the first-level cache.
constexpr i64 TILE_ROWS = 64;

// Elements of column c in rows [begin, end).
template <class F>
WL_DEVICE void map_column(const F& f, i64 begin, i64 end, i64 c, typename F::sum& total) {
  const auto state = f.column(c);
  if (!state.active)
    return;
  i64 i = begin;
  if constexpr (has_sum<F>) {
    typename F::sum part[LANES] = {};
    for (; i + LANES <= end; i += LANES) {
#pragma clang loop vectorize(assume_safety)
      for (int lane = 0; lane < LANES; ++lane)
        part[lane] += f(i + lane, c, state);
    }
    for (int lane = 0; i < end; ++i, ++lane)
      part[lane] += f(i, c, state);
    for (int half = LANES / 2; half > 0; half /= 2)
      for (int lane = 0; lane < half; ++lane)
        part[lane] += part[lane + half];
    total += part[0];
  } else {
#pragma clang loop vectorize(assume_safety)
    for (i64 row = i; row < end; ++row)
      f(row, c, state);
  }
}

// W neighbouring columns side by side in vector registers, unless one of them has stopped.
template <int W, class F>
WL_DEVICE void map_strip(const F& f, i64 begin, i64 end, i64 c, typename F::sum* totals) {
  if constexpr (W == 1) {
    map_column(f, begin, end, c, totals[0]);
  } else {
    struct {
      typename F::column_state of[W];
    } state;
    bool all = true;
    for (int w = 0; w < W; ++w) {
      state.of[w] = f.column(c + w);
      all = all && state.of[w].active;
    }
    if (!all) {
      for (int w = 0; w < W; ++w)
        map_column(f, begin, end, c + w, totals[w]);
      return;
    }
    typename F::sum part[W] = {};
    for (i64 i = begin; i < end; ++i) {
#pragma clang loop vectorize(assume_safety)
      for (int w = 0; w < W; ++w)
        part[w] += f(i, c + w, state.of[w]);
    }
    for (int w = 0; w < W; ++w)
      totals[w] += part[w];
  }
}

template <int W, class F>
WL_DEVICE void map_strips(const F& f, i64 begin, i64 end, i64 c, i64 k, typename F::sum* totals) {
  for (; c + W <= k; c += W)
    map_strip<W>(f, begin, end, c, totals + c);
  if constexpr (W > 1)
    map_strips<W / 2>(f, begin, end, c, k, totals);
}

// Visits all elements, then finishes every active column. `partials` has room for a sum per column
// and block.
template <class F>
WL_DEVICE void map(const item& it, const F& f, i64 n, i64 k, void* partials, i32* counter) {
  using S = typename F::sum;
  const i64 begin = n * it.block() / it.blocks(), end = n * (it.block() + 1) / it.blocks();
  auto* const sums = static_cast<S*>(partials);
  auto* const mine = sums + it.block() * k;
  if (k == 1) {
    S total{};
    map_column(f, begin, end, 0, total);
    mine[0] = total;
  } else {
    for (i64 c = 0; c < k; ++c)
      mine[c] = S{};
    for (i64 tile = begin; tile < end; tile += TILE_ROWS)
      map_strips<8>(f, tile, tile + TILE_ROWS < end ? tile + TILE_ROWS : end, 0, k, mine);
  }
  if constexpr (has_sum<F>) {
    if (!is_last_block(it, counter))
      return;
    for (i64 c = 0; c < k; ++c) {
      if (!f.column(c).active)
        continue;
      S total{};
      for (i64 b = 0; b < it.blocks(); ++b)
        total += sums[b * k + c];
      f.finish(c, total);
    }
  }
}

} // namespace wl
