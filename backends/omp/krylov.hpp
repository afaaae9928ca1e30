// Operations of many vectors with one vector: the loops of Gram-Schmidt.
//
// A basis is read from memory once per call. Rows are processed in blocks that stay in the
// first-level cache while all basis vectors are read, a few at a time; sums are added up in the
// order of blocks and parts. A basis may be stored in a lower precision S than the type T of the
// computation.
#pragma once

#include <type_traits>

#include "omp/function_ref.hpp"
#include "omp/lowered.hpp"
#include "omp/parallel.hpp"
#include "unified/types.hpp"

namespace wl {

namespace detail {

// The rows of a block of vectors that stay in cache: a third of 48 KB.
constexpr i64 kBlockBytes = 16384;

// Basis vectors that are processed together: w is loaded once for this number.
constexpr int kTogether = 4;

// The number of independent sums over the rows of a contiguous column: a cache line of numbers.
template <class T>
constexpr int kRowLanes = 64 / sizeof(real_t<T>);

// The number of adjacent columns that are summed together; the rest go in pairs and singly.
constexpr int kColumnLanes = 8;

// Calls body(lanes, row, c, steps, rows_per_step) on pieces that cover rows [begin, end) of the
// columns with key(c) != 0. In step s the lanes are rows row + s * rows_per_step + (0, 1, ...) of
// one column, or adjacent columns of one key in row + s.
template <int RowLanes, class Key, class Body>
void for_lanes(i64 begin, i64 end, i64 k, bool one_contiguous, Key&& key, Body&& body) {
  if (one_contiguous) {
    if (key(0) == 0)
      return;
    const i64 full = (end - begin) / RowLanes;
    if (full > 0)
      body(std::integral_constant<int, RowLanes>(), begin, 0, full, RowLanes);
    begin += full * RowLanes;
    if (begin < end)
      body(std::integral_constant<int, 1>(), begin, 0, end - begin, 1);
    return;
  }
  for (i64 c = 0; c < k;) {
    i64 run = 1;
    while (run < kColumnLanes && c + run < k && key(c + run) == key(c))
      ++run;
    const int lanes = run == kColumnLanes ? kColumnLanes : run >= 2 ? 2 : 1;
    if (key(c) == 0) {
      c += run;
      continue;
    }
    if (lanes == kColumnLanes)
      body(std::integral_constant<int, kColumnLanes>(), begin, c, end - begin, 1);
    else if (lanes == 2)
      body(std::integral_constant<int, 2>(), begin, c, end - begin, 1);
    else
      body(std::integral_constant<int, 1>(), begin, c, end - begin, 1);
    c += lanes;
  }
}

// sums[g][l] = sum of conj(v_g) w over the steps, for G vectors that lie `between` apart.
template <int G, int L, class T, class S>
void dots(const S* v, i64 between, i64 v_step, const T* w, i64 w_step, i64 steps, T (&sums)[G][L]) {
  T part[G][L] = {};
  for (i64 s = 0; s < steps; ++s, v += v_step, w += w_step)
    for (int g = 0; g < G; ++g) {
      const RaisedLanes<L, T, S> lanes(v + g * between);
#pragma omp simd
      for (int l = 0; l < L; ++l)
        part[g][l] += conj(lanes[l]) * w[l];
    }
  for (int g = 0; g < G; ++g)
    for (int l = 0; l < L; ++l)
      sums[g][l] = part[g][l];
}

// w += sum of factors[g][l] v_g.
template <int G, int L, class T, class S>
void add(const S* v, i64 between, i64 v_step, T* w, i64 w_step, i64 steps,
         const T (&factors)[G][L]) {
  T factor[G][L];
  for (int g = 0; g < G; ++g)
    for (int l = 0; l < L; ++l)
      factor[g][l] = factors[g][l];
  for (i64 s = 0; s < steps; ++s, v += v_step, w += w_step) {
    if constexpr (std::is_same_v<S, T>) {
#pragma omp simd
      for (int l = 0; l < L; ++l) {
        T sum = w[l];
#pragma GCC unroll 8
        for (int g = 0; g < G; ++g)
          sum += factor[g][l] * v[g * between + l];
        w[l] = sum;
      }
    } else {
      T sum[L];
      for (int l = 0; l < L; ++l)
        sum[l] = w[l];
#pragma GCC unroll 8
      for (int g = 0; g < G; ++g) {
        const RaisedLanes<L, T, S> lanes(v + g * between);
#pragma omp simd
        for (int l = 0; l < L; ++l)
          sum[l] += factor[g][l] * lanes[l];
      }
      for (int l = 0; l < L; ++l)
        w[l] = sum[l];
    }
  }
}

template <int L, class T>
void squares(const T* w, i64 w_step, i64 steps, real_t<T> (&sums)[L]) {
  real_t<T> part[L] = {};
  for (i64 s = 0; s < steps; ++s, w += w_step) {
#pragma omp simd
    for (int l = 0; l < L; ++l)
      part[l] += square(w[l]);
  }
  for (int l = 0; l < L; ++l)
    sums[l] = part[l];
}

// Adds the lanes to the sums of their columns.
template <int L, class S>
void add_lanes(const S (&lanes)[L], i64 k, i64 c, S* sums) {
  for (int l = 0; l < L; ++l)
    sums[k == 1 ? 0 : c + l] += lanes[l];
}

// Calls body(part, begin, end) on blocks of rows, parts in parallel.
template <class T, class Body>
void for_blocks(i64 n, i64 k, int parts, Body&& body) {
  const i64 row_bytes = static_cast<i64>(sizeof(T)) * std::max<i64>(k, 1);
  const i64 rows = std::max<i64>(64, kBlockBytes / row_bytes);
  const auto do_part = [&](int part) {
    const Share share(n, part, parts);
    for (i64 begin = share.begin; begin < share.end; begin += rows)
      body(part, begin, std::min(begin + rows, share.end));
  };
  for_parts(parts, do_part);
}

} // namespace detail

// `vectors` basis vectors of n rows and k columns, one after the other, times unit<S>.
template <class S>
struct Basis {
  const S* data;
  i64 vectors, n, k;
  i64 between() const { return n * k; }
  const S* at(i64 i, i64 row, i64 c) const { return data + i * between() + row * k + c; }
  int parts(int threads) const { return vectors * between() < kSerialElements ? 1 : threads; }
};

// Calls found(i, c, <basis_i, w_c>) and norm(c, |w_c|) for the columns with on(c).
template <class S, class T>
void project(const Basis<S>& basis, mat<const T> w, int threads, FunctionRef<i64(i64)> on,
             not_deduced<FunctionRef<void(i64, i64, T)>> found,
             not_deduced<FunctionRef<void(i64, real_t<T>)>> norm) {
  using namespace detail;
  const i64 n = basis.n, k = basis.k, vectors = basis.vectors;
  const int parts = basis.parts(threads);
  Scratch<T> all_sums(parts * vectors * k);
  Scratch<real_t<T>> all_squares(parts * k);
  T* const sums = all_sums.data();
  real_t<T>* const norms = all_squares.data();
  for_blocks<T>(n, k, parts, [&](int part, i64 begin, i64 end) {
    T* const mine = sums + part * vectors * k;
    const auto piece = [&](auto lanes, i64 row, i64 c, i64 steps, i64 rows_per_step) {
      constexpr int L = decltype(lanes)::value;
      const T* const from = w.data + row * w.ld + c;
      const i64 w_step = rows_per_step * w.ld, v_step = rows_per_step * k;
      const auto some = [&](auto together, i64 i) {
        constexpr int G = decltype(together)::value;
        T found_here[G][L];
        dots(basis.at(i, row, c), basis.between(), v_step, from, w_step, steps, found_here);
        for (int g = 0; g < G; ++g)
          add_lanes(found_here[g], k, c, mine + (i + g) * k);
      };
      i64 i = 0;
      for (; i + kTogether <= vectors; i += kTogether)
        some(std::integral_constant<int, kTogether>(), i);
      for (; i < vectors; ++i)
        some(std::integral_constant<int, 1>(), i);
      real_t<T> squared[L];
      squares<L, T>(from, w_step, steps, squared);
      add_lanes(squared, k, c, norms + part * k);
    };
    for_lanes<kRowLanes<T>>(begin, end, k, k == 1 && w.ld == 1, on, piece);
  });
  for (i64 c = 0; c < k; ++c) {
    if (!on(c))
      continue;
    for (i64 i = 0; i < vectors; ++i) {
      T sum(0);
      for (int part = 0; part < parts; ++part)
        sum += sums[(part * vectors + i) * k + c];
      found(i, c, without_unit<S>(sum));
    }
    real_t<T> squared(0);
    for (int part = 0; part < parts; ++part)
      squared += norms[part * k + c];
    norm(c, square_root(squared));
  }
}

// w_c += sum of factor(i, c) basis_i over i < count(c), from 0 if `fresh`; then norm(c, |w_c|).
template <class S, class T>
void combine(const Basis<S>& basis, mat<T> w, bool fresh, int threads, FunctionRef<i64(i64)> count,
             not_deduced<FunctionRef<T(i64, i64)>> factor,
             not_deduced<FunctionRef<void(i64, real_t<T>)>> norm) {
  using namespace detail;
  const i64 n = basis.n, k = basis.k;
  const int parts = basis.parts(threads);
  Scratch<real_t<T>> all_squares(parts * k);
  real_t<T>* const norms = all_squares.data();
  for_blocks<T>(n, k, parts, [&](int part, i64 begin, i64 end) {
    if (fresh)
      for (i64 row = begin; row < end; ++row)
        std::fill_n(w.data + row * w.ld, k, T(0));
    const auto piece = [&](auto lanes, i64 row, i64 c, i64 steps, i64 rows_per_step) {
      constexpr int L = decltype(lanes)::value;
      T* const to = w.data + row * w.ld + c;
      const i64 w_step = rows_per_step * w.ld, v_step = rows_per_step * k;
      const auto some = [&](auto together, i64 i) {
        constexpr int G = decltype(together)::value;
        T factors[G][L];
        for (int g = 0; g < G; ++g)
          for (int l = 0; l < L; ++l)
            factors[g][l] = l > 0 && k == 1 ? factors[g][0] : without_unit<S>(factor(i + g, c + l));
        add(basis.at(i, row, c), basis.between(), v_step, to, w_step, steps, factors);
      };
      const i64 vectors = count(c);
      i64 i = 0;
      for (; i + kTogether <= vectors; i += kTogether)
        some(std::integral_constant<int, kTogether>(), i);
      for (; i < vectors; ++i)
        some(std::integral_constant<int, 1>(), i);
      real_t<T> squared[L];
      squares<L, T>(to, w_step, steps, squared);
      add_lanes(squared, k, c, norms + part * k);
    };
    for_lanes<kRowLanes<T>>(begin, end, k, k == 1 && w.ld == 1, count, piece);
  });
  for (i64 c = 0; c < k; ++c) {
    if (count(c) == 0)
      continue;
    real_t<T> squared(0);
    for (int part = 0; part < parts; ++part)
      squared += norms[part * k + c];
    norm(c, square_root(squared));
  }
}

enum class Scaling { SKIP, ZERO, DIVIDE };

// v = basis vector `to` = w / length where how(c) says so, both rounded to the dtype of the basis.
template <class T, class S>
void normalize(mat<const T> w, const real_t<T>* length, mat<T> v, S* to, i64 n, i64 k, int threads,
               FunctionRef<Scaling(i64)> how) {
  using namespace detail;
  const int parts = n * k < kSerialElements ? 1 : threads;
  for_blocks<T>(n, k, parts, [&](int, i64 begin, i64 end) {
    const auto key = [&](i64 c) { return static_cast<i64>(how(c)); };
    const auto piece = [&](auto lanes, i64 row, i64 c, i64 steps, i64 rows_per_step) {
      constexpr int L = decltype(lanes)::value;
      real_t<T> divisor[L];
      for (int l = 0; l < L; ++l)
        divisor[l] = length[k == 1 ? 0 : c + l];
      const bool zero = how(c) == Scaling::ZERO;
      for (i64 s = 0; s < steps; ++s) {
        const i64 at = row + s * rows_per_step;
        const T* const from = w.data + at * w.ld + c;
        T* const one = v.data + at * v.ld + c;
        S* const other = to + at * k + c;
#pragma omp simd
        for (int l = 0; l < L; ++l) {
          other[l] = lowered<S>(zero ? T(0) : from[l] / divisor[l]);
          one[l] = without_unit<S>(raised<T>(as_stored<T>(other[l])));
        }
      }
    };
    for_lanes<kRowLanes<T>>(begin, end, k, k == 1 && w.ld == 1 && v.ld == 1, key, piece);
  });
}

} // namespace wl
