// Incomplete factors and substitution on cores. See wollemi.core.operations.triangular.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "unified/triangular.hpp"
#include "omp/crowding.hpp"
#include "omp/interruption.hpp"
#include "omp/ordered_blocks.hpp"
#include "omp/parallel.hpp"

namespace wl {

template <class T, class I>
struct triangular_factorize {
  const I *indptr, *indices, *diagonal;
  T* v;
  i64 p, e, n;

  void operator()(int) const {
    // The positions of the entries of the current row, by column.
    std::vector<I> place(static_cast<std::size_t>(n), I(-1));
    for (i64 i = 0; i < n; ++i) {
      for (I q = indptr[i]; q < indptr[i + 1]; ++q)
        place[indices[q]] = q;
      for (I q = indptr[i]; q < diagonal[i]; ++q) {
        const i64 l = indices[q];
        const T factor = v[q] / v[diagonal[l]];
        v[q] = factor;
        for (I t = diagonal[l] + 1; t < indptr[l + 1]; ++t)
          if (const I at = place[indices[t]]; at >= 0)
            v[at] -= factor * v[t];
      }
      for (I q = indptr[i]; q < indptr[i + 1]; ++q)
        place[indices[q]] = I(-1);
    }
  }
};

// Rows of incomplete factors by thresholds: Saad, Iterative Methods for Sparse Linear Systems, 2nd
// ed., algorithm 10.6.
template <class T, class I>
struct triangular_threshold {
  using R = real_t<T>;
  const I *indptr, *indices;
  const T* a;
  R drop;
  i64 fill;
  I *lower_length, *lower_indices;
  T* lower;
  I *upper_length, *upper_indices;
  T* upper;
  i64 p, e, n, l, u;

  struct State {
    std::vector<T> row;
    std::vector<char> there;
    std::vector<I> columns, below; // of the current row; columns to eliminate, as a heap
    std::vector<I> kept;
  };

  void operator()(int) const {
    State s;
    s.row.assign(static_cast<std::size_t>(n), T(0));
    s.there.assign(static_cast<std::size_t>(n), 0);
    for (i64 i = 0; i < n && !interrupted(); ++i)
      make_row(s, i);
    end_if_interrupted();
  }

  void add(State& s, i64 i, I j, T value) const {
    if (!s.there[j]) {
      s.there[j] = 1, s.row[j] = T(0);
      s.columns.push_back(j);
      if (j < i) {
        s.below.push_back(j);
        std::push_heap(s.below.begin(), s.below.end(), std::greater<I>());
      }
    }
    s.row[j] += value;
  }

  void make_row(State& s, i64 i) const {
    R norm(0);
    s.columns.clear();
    add(s, i, static_cast<I>(i), T(0));
    for (I q = indptr[i]; q < indptr[i + 1]; ++q) {
      add(s, i, indices[q], a[q]);
      norm += square(a[q]);
    }
    const R smallest = drop * square_root(norm);
    while (!s.below.empty()) {
      std::pop_heap(s.below.begin(), s.below.end(), std::greater<I>());
      const I k = s.below.back();
      s.below.pop_back();
      const i64 first = k * (fill + 1);
      const T factor = s.row[k] / upper[first];
      if (magnitude(factor) < smallest) {
        s.row[k] = T(0);
        continue;
      }
      s.row[k] = factor;
      for (i64 q = first + 1; q < first + upper_length[k]; ++q)
        add(s, i, upper_indices[q], -(factor * upper[q]));
    }
    upper_indices[i * (fill + 1)] = static_cast<I>(i);
    upper[i * (fill + 1)] = s.row[i];
    lower_length[i] = keep(s, i, smallest, true, lower_indices + i * fill, lower + i * fill);
    upper_length[i] = I(1) + keep(s, i, smallest, false, upper_indices + i * (fill + 1) + 1,
                                  upper + i * (fill + 1) + 1);
    for (const I j : s.columns)
      s.there[j] = 0;
  }

  // The largest entries of one half, by columns.
  I keep(State& s, i64 i, R smallest, bool below, I* to_indices, T* to) const {
    s.kept.clear();
    for (const I j : s.columns)
      if ((below ? j < i : j > i) && !(magnitude(s.row[j]) < smallest) && s.row[j] != T(0))
        s.kept.push_back(j);
    const auto count = std::min<i64>(fill, static_cast<i64>(s.kept.size()));
    std::sort(s.kept.begin(), s.kept.end(), [&](I x, I y) {
      const R p = magnitude(s.row[x]), q = magnitude(s.row[y]);
      return p != q ? p > q : x < y;
    });
    s.kept.resize(static_cast<std::size_t>(count));
    std::sort(s.kept.begin(), s.kept.end());
    for (i64 q = 0; q < count; ++q)
      to_indices[q] = s.kept[q], to[q] = s.row[s.kept[q]];
    return static_cast<I>(count);
  }
};

template <class I>
struct triangular_levels {
  const I *indptr, *indices;
  i64 upper;
  I* level;
  i64 p, e, n;

  void operator()(int) const {
    for (i64 step = 0; step < n; ++step) {
      const i64 i = upper ? n - 1 - step : step;
      I own = 0;
      for (I q = indptr[i]; q < indptr[i + 1]; ++q) {
        const i64 j = indices[q];
        if (upper ? j > i : j < i)
          own = std::max<I>(own, level[j] + 1);
      }
      level[i] = own;
    }
  }
};

// The number of rows and entries of a level from which threads share it: they have a barrier after
// each level, which costs more than it saves on smaller levels (7 points on 64^3 cells have 8000,
// 27 points 19000).
constexpr i64 kSharedLevel = 12288;

// Rows of a triangle, each computed after the rows that it needs.
template <class T, class I>
struct TriangleRows {
  const I *indptr, *indices;
  const T *data, *inverse;
  T factor;
  mat<T> x;
  i64 n, k;

  // The previous row is often the last entry, and its result is not available yet: everything else
  // is added up first, so that a row waits for one multiplication and one addition.
  template <bool Upper>
  void compute(i64 i) const {
    const i64 begin = indptr[i], end = indptr[i + 1];
    const i64 near = Upper ? begin : end - 1;
    const bool waits = begin < end && (Upper ? indices[near] > i : indices[near] < i);
    const i64 first = Upper && waits ? begin + 1 : begin, last = !Upper && waits ? end - 1 : end;
    const T scale = inverse[i] * factor;
    for (i64 c = 0; c < k; ++c) {
      T sum(0);
      for (i64 q = first; q < last; ++q)
        if (const i64 j = indices[q]; Upper ? j > i : j < i)
          sum += data[q] * x(j, c);
      const T known = inverse[i] * x(i, c) + scale * sum;
      x(i, c) = waits ? known + (scale * data[near]) * x(indices[near], c) : known;
    }
  }

  // The rows begin, ..., end - 1 in their order. A separate function gives the same bits for every
  // caller.
  template <bool Upper>
  [[gnu::noinline]] void compute(i64 begin, i64 end) const {
    for (i64 step = begin; step < end; ++step)
      compute<Upper>(Upper ? n - 1 - step : step);
  }
};

template <class T, class I>
struct triangular_substitute {
  const I *rows, *bounds, *indptr, *indices;
  const T *data, *inverse;
  T factor;
  i64 upper;
  mat<T> x;
  i64 m, b, p, e, n, k;

  template <bool Upper>
  void substitute(int threads) const {
    const TriangleRows<T, I> all{indptr, indices, data, inverse, factor, x, n, k};
    // Rows in their own order find their operands in the cache; rows by levels do not.
    if (m == n && (threads < 2 || (m + e) * k < kSharedLevel * (b - 1)))
      return all.template compute<Upper>(0, n);
    for (i64 l = 0; l + 1 < b; ++l) {
      const i64 begin = bounds[l], count = bounds[l + 1] - begin;
      const i64 work = count * k * (n + e) / n;
      const int parts = work < kSharedLevel ? 1 : threads;
      const auto part = [&](int which) {
        const Share share(count, which, parts);
        const i64 first = next_run<Upper>(begin, begin + share.begin, begin + count);
        const i64 last = next_run<Upper>(begin, begin + share.end, begin + count);
        for (i64 t = first; t < last; ++t)
          all.template compute<Upper>(rows[t]);
      };
      if (parts == 1)
        part(0);
      else
        for_parts(parts, part);
    }
  }

  // Adjacent rows may depend on each other: one thread computes them.
  template <bool Upper>
  i64 next_run(i64 begin, i64 t, i64 end) const {
    while (t > begin && t < end && rows[t] == rows[t - 1] + (Upper ? -1 : 1))
      ++t;
    return t;
  }

  void operator()(int threads) const {
    if (upper)
      substitute<true>(threads);
    else
      substitute<false>(threads);
  }
};

template <class T, class I>
struct triangular_lanes {
  const I *starts, *begin, *end, *waits, *of, *needed, *indptr, *indices;
  const T *data, *inverse;
  T factor;
  i64 upper;
  mat<T> x;
  i64 l, b, a, w, p, e, n, k;

  void operator()(int threads) const {
    const TriangleRows<T, I> all{indptr, indices, data, inverse, factor, x, n, k};
    if (upper)
      substitute<true>(all, threads);
    else
      substitute<false>(all, threads);
  }

  template <bool Upper>
  void substitute(const TriangleRows<T, I>& all, int threads) const {
    // On crowded cores a thread that others wait for is put aside for longer than all rows take.
    if (threads < 2 || crowding().is_on())
      return all.template compute<Upper>(0, n);
    for_lanes(Lanes<I>{starts, begin, waits, of, needed, l - 1},
              [&](i64 block) { all.template compute<Upper>(begin[block], end[block]); });
  }
};

} // namespace wl
