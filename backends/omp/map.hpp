// The launcher of unified functors: every row and column once, sums in a fixed order.
#pragma once

#include "unified/extremes.hpp"
#include "unified/halves.hpp"
#include "omp/parallel.hpp"
#include "omp/slots.hpp"
#include "unified/types.hpp"

namespace wl {

namespace detail {

// The number of independent parts of the sum of a column, which fill vector registers: g++ does not
// vectorize reductions of user-defined types, and must not reorder the sums of one.
//
// All loops over elements are `omp simd`: otherwise g++ makes two loops and chooses one of them by
// the distances of the arrays in memory. The two round complex products differently.
constexpr int kLanes = 16;

// Whether blocks of columns have loops of their own. Processors without AVX2 do without: the module
// takes half as long to compile then.
#if defined(__x86_64__) && !defined(__AVX2__)
constexpr bool kManyShapes = false;
#else
constexpr bool kManyShapes = true;
#endif

// Rows that all strips of columns visit while they are in the first-level cache.
constexpr i64 kTileRows = 64;

template <class F>
inline constexpr bool sums = !same<typename F::sum, none>::value;

template <class S>
inline constexpr bool is_real_extreme = false;
template <bool LARGEST>
inline constexpr bool is_real_extreme<extreme<float, LARGEST>> = true;
template <bool LARGEST>
inline constexpr bool is_real_extreme<extreme<double, LARGEST>> = true;

// Every row has a number. Lanes keep the larger of two numbers, which is one instruction, and
// whether one was NaN.
template <class F, class R, bool LARGEST>
inline void map_extremes(const F& f, i64 begin, i64 end, i64 c, extreme<R, LARGEST>& total) {
  const auto state = f.column(c);
  if (!state.active)
    return;
  i64 i = begin;
  if (end - begin >= kLanes) {
    R best[kLanes], sum[kLanes];
    for (int lane = 0; lane < kLanes; ++lane)
      best[lane] = f(begin + lane, c, state).value, sum[lane] = R(0);
    for (; i + kLanes <= end; i += kLanes) {
#pragma omp simd
      for (int lane = 0; lane < kLanes; ++lane) {
        const R value = f(i + lane, c, state).value;
        if constexpr (LARGEST)
          best[lane] = best[lane] < value ? value : best[lane];
        else
          best[lane] = value < best[lane] ? value : best[lane];
        sum[lane] += value * R(0); // NaN for NaN, and for infinities
      }
    }
    bool ordinary = true;
    for (int lane = 0; lane < kLanes; ++lane)
      ordinary = ordinary && sum[lane] == R(0);
    if (ordinary)
      for (int lane = 0; lane < kLanes; ++lane)
        total += extreme<R, LARGEST>{best[lane], 1};
    else
      i = begin;
  }
  for (; i < end; ++i)
    total += f(i, c, state);
}

template <class F>
inline void map_rows(const F& f, i64 begin, i64 end, i64 c, typename F::sum& total) {
  const auto state = f.column(c);
  if (!state.active)
    return;
  if constexpr (is_real_extreme<typename F::sum>) {
    map_extremes(f, begin, end, c, total);
  } else if constexpr (sums<F>) {
    typename F::sum part[kLanes] = {};
    i64 i = begin;
    for (; i + kLanes <= end; i += kLanes) {
#pragma omp simd
      for (int lane = 0; lane < kLanes; ++lane)
        part[lane] += f(i + lane, c, state);
    }
    const int rest = static_cast<int>(end - i);
#pragma omp simd
    for (int lane = 0; lane < rest; ++lane)
      part[lane] += f(i + lane, c, state);
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
// operation calls it several times. The functor is copied so that its members can live in
// registers.
template <class F>
[[gnu::noinline]] void map_column(const F& functor, i64 begin, i64 end, i64 c,
                                  typename F::sum& total) {
  const F f = functor;
  map_rows(f, begin, end, c, total);
}

// The loop if all matrices have unit row strides, so that rows are adjacent.
template <class F, class Strides>
[[gnu::noinline]] void map_neighbours(const F& functor, i64 begin, i64 end,
                                      typename F::sum& total) {
  F f = functor;
  Strides::set_unit(f);
  map_rows(f, begin, end, 0, total);
}

// Blocks without gaps with k columns that divide kLanes, read as one column of rows * k elements:
// Returns false, having done nothing, if a column has stopped.
template <class F, class Strides>
[[gnu::noinline]] bool map_flat(const F& functor, i64 begin, i64 end, i64 k,
                                typename F::sum* totals) {
  struct {
    typename F::column_state of[kLanes];
  } state;
  for (int lane = 0; lane < kLanes; ++lane) {
    state.of[lane] = functor.column(lane % k);
    if (!state.of[lane].active)
      return false;
  }
  F f = functor;
  Strides::set_unit(f);
  typename F::sum part[kLanes] = {};
  i64 e = begin * k;
  for (; e + kLanes <= end * k; e += kLanes) {
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane)
      part[lane] += f(e + lane, 0, state.of[lane]);
  }
  const int rest = static_cast<int>(end * k - e);
#pragma omp simd
  for (int lane = 0; lane < rest; ++lane)
    part[lane] += f(e + lane, 0, state.of[lane]);
  for (int lane = 0; lane < kLanes; ++lane)
    totals[lane % k] += part[lane];
  return true;
}

// W adjacent columns in the lanes of vector registers, unless a column has stopped.
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

// All columns, widest strips first. Fewer widths would be slower and more would take longer to
// compile.
template <class F>
void map_strips(const F& f, i64 begin, i64 end, i64 k, typename F::sum* totals) {
  i64 c = 0;
  for (; c + 8 <= k; c += 8)
    map_strip<8>(f, begin, end, c, totals + c);
  for (; c + 2 <= k; c += 2)
    map_strip<2>(f, begin, end, c, totals + c);
  if (c < k)
    map_column(f, begin, end, c, totals[c]);
}

} // namespace detail

// A functor over `rows` and `columns`. `Strides` describes its members: have(f, ld) tells whether
// ld is the row stride of all matrices, set_unit(f) makes it the constant 1, by_row tells that
// there are arrays of one element per row, so that rows and columns are not exchangeable,
// one_column that there is one column and no matrix, and has_halves that a group may add up the
// sums. Both halves and the whole functor are one instance, because the loops over elements take
// long to compile.
template <class F, class Strides>
struct Map {
  F functor;
  i64 rows, columns;
  bool without_gaps;
  Slots slots;

  Map(const F& f, i64 n, i64 k, Slots between = {})
      : functor(f), rows(n), columns(k), without_gaps(Strides::have(f, k)), slots(between) {}

  i64 elements() const { return rows * columns; }

  void operator()(int threads) const {
    if (columns == 0)
      return;
    const bool visits = slots.half != Half::FINISHING;
    const int parts = !visits || elements() < kSerialElements ? 1 : threads;
    Scratch<Sum> totals(static_cast<std::size_t>(parts) * columns);
    Sum* const total = totals.data();
    if (visits)
      for_parts(parts, [&](int part) {
        const Share share(rows, part, parts);
        visit(share.begin, share.end, total + part * columns);
      });
    finish(total, parts);
  }

private:
  using Sum = typename F::sum;

  void visit(i64 begin, i64 end, Sum* totals) const {
    if constexpr (Strides::one_column)
      return detail::map_column(functor, begin, end, 0, *totals);
    else
      visit_columns(begin, end, totals);
  }

  void visit_columns(i64 begin, i64 end, Sum* totals) const {
    if (columns == 1 && without_gaps)
      return detail::map_neighbours<F, Strides>(functor, begin, end, *totals);
    if (columns == 1 || !detail::kManyShapes) {
      for (i64 c = 0; c < columns; ++c)
        detail::map_column(functor, begin, end, c, totals[c]);
      return;
    }
    if constexpr (!Strides::by_row && detail::kManyShapes) {
      const bool divides = columns <= detail::kLanes && detail::kLanes % columns == 0;
      if (without_gaps && divides &&
          detail::map_flat<F, Strides>(functor, begin, end, columns, totals))
        return;
    }
    if constexpr (detail::kManyShapes)
      for (; begin < end; begin += detail::kTileRows)
        detail::map_strips(functor, begin, std::min(begin + detail::kTileRows, end), columns,
                           totals);
  }

  void finish(Sum* total, int parts) const {
    for (i64 c = 0; c < columns; ++c) {
      if (!functor.column(c).active)
        continue;
      for (int part = 1; part < parts; ++part)
        total[c] += total[part * columns + c];
      if constexpr (Strides::has_halves) {
        if (slots.half != Half::WHOLE)
          exchange(c, total[c]);
        if (slots.half == Half::VISITING)
          continue;
      }
      functor.finish(c, total[c]);
    }
  }

  // Writes the sum of a column to the slots, or reads the group's from there.
  void exchange(i64 c, Sum& total) const {
    i64 word = 0;
    each_number(total, [&](auto& number) {
      auto& slot =
          static_cast<std::decay_t<decltype(number)>*>(slots.numbers)[word++ * columns + c];
      (slots.half == Half::VISITING ? slot : number) = slots.half == Half::VISITING ? number : slot;
    });
  }
};

} // namespace wl
