// The launcher of unified functors: every row and column once, sums in a fixed order.
#pragma once

#include "parallel.hpp"
#include "types.hpp"

namespace wl {

namespace detail {

// The sums of a column are kept in this many independent parts, so that they fill vector registers:
// g++ does not vectorize reductions of our own types, and must not reorder the sums of one.
constexpr int kLanes = 16;

// Rows that all strips of columns visit while they are in the first-level cache.
constexpr i64 kTileRows = 64;

template <class F>
inline constexpr bool sums = !same<typename F::sum, none>::value;

template <class F>
inline void map_rows(const F& f, i64 begin, i64 end, i64 c, typename F::sum& total) {
  const auto state = f.column(c);
  if (!state.active)
    return;
  if constexpr (sums<F>) {
    typename F::sum part[kLanes] = {};
    i64 i = begin;
    for (; i + kLanes <= end; i += kLanes) {
#pragma omp simd
      for (int lane = 0; lane < kLanes; ++lane)
        part[lane] += f(i + lane, c, state);
    }
    for (int lane = 0; i < end; ++i, ++lane)
      part[lane] += f(i, c, state);
    for (int half = kLanes / 2; half > 0; half /= 2)
      for (int lane = 0; lane < half; ++lane)
        part[lane] += part[lane + half];
    total += part[0];
  } else {
#pragma omp simd
    for (i64 i = begin; i < end; ++i)
      f(i, c, state);
  }
}

// Elements of column c in rows [begin, end), which one thread adds to `total`. Not inlined: an
// operation needs it in several places. The functor is copied so that its members can live in
// registers.
template <class F>
[[gnu::noinline]] void map_column(const F& functor, i64 begin, i64 end, i64 c,
                                  typename F::sum& total) {
  const F f = functor;
  map_rows(f, begin, end, c, total);
}

// The same where all matrices have unit row strides, a constant that makes rows neighbours.
template <class F, class Strides>
[[gnu::noinline]] void map_neighbours(const F& functor, i64 begin, i64 end,
                                      typename F::sum& total) {
  F f = functor;
  Strides::set_unit(f);
  map_rows(f, begin, end, 0, total);
}

// W neighbouring columns side by side in vector registers, unless one of them has stopped.
template <int W, class F>
[[gnu::noinline]] void map_strip(const F& functor, i64 begin, i64 end, i64 c,
                                 typename F::sum* totals) {
  const F f = functor;
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
      map_column(functor, begin, end, c + w, totals[w]);
    return;
  }
  typename F::sum part[W] = {};
  for (i64 i = begin; i < end; ++i) {
#pragma omp simd
    for (int w = 0; w < W; ++w)
      part[w] += f(i, c + w, state.of[w]);
  }
  for (int w = 0; w < W; ++w)
    totals[w] += part[w];
}

template <int W, class F>
void map_strips(const F& f, i64 begin, i64 end, i64 c, i64 k, typename F::sum* totals) {
  if constexpr (W > 1) {
    for (; c + W <= k; c += W)
      map_strip<W>(f, begin, end, c, totals + c);
    map_strips<W / 2>(f, begin, end, c, k, totals);
  } else {
    if (c < k)
      map_column(f, begin, end, c, totals[c]);
  }
}

} // namespace detail

// A functor over `rows` and `columns`. `Strides` knows its matrices: Strides::unit(f) sets all
// their row strides to 1, a constant that makes the loop over one column a loop over neighbours.
template <class F, class Strides>
struct Map {
  F functor;
  i64 rows, columns;
  bool neighbours;

  Map(const F& f, i64 n, i64 k)
      : functor(f), rows(n), columns(k), neighbours(k == 1 && Strides::are_unit(f)) {}

  i64 elements() const { return rows * columns; }

  void operator()(int threads) const {
    const int parts = elements() < kSerialElements ? 1 : threads;
    Scratch<Sum> totals(static_cast<std::size_t>(parts) * columns);
    Sum* const total = totals.data();
    if (parts == 1) {
      part_of(0, rows, total);
    } else {
#pragma omp parallel for schedule(static, 1) num_threads(parts)
      for (int part = 0; part < parts; ++part) {
        const Share share(rows, part, parts);
        part_of(share.begin, share.end, total + part * columns);
      }
    }
    finish(total, parts);
  }

private:
  using Sum = typename F::sum;

  void part_of(i64 begin, i64 end, Sum* totals) const {
    if (columns == 1 && neighbours) {
      detail::map_neighbours<F, Strides>(functor, begin, end, *totals);
    } else if (columns == 1) {
      detail::map_column(functor, begin, end, 0, *totals);
    } else {
      for (; begin < end; begin += detail::kTileRows)
        detail::map_strips<8>(functor, begin, std::min(begin + detail::kTileRows, end), 0, columns,
                              totals);
    }
  }

  void finish(Sum* total, int parts) const {
    for (i64 c = 0; c < columns; ++c) {
      if (!functor.column(c).active)
        continue;
      for (int part = 1; part < parts; ++part)
        total[c] += total[part * columns + c];
      functor.finish(c, total[c]);
    }
  }
};

} // namespace wl
