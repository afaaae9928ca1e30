// Definitions that all products of this folder share: one text for g++ (omp) and for SYCL on CPU
// devices.
//
// The functions here compute a range of rows and do not depend on threads or work-items. Each
// backend provides the differences between compilers in "arithmetic.hpp": multiply_add,
// prefetch_eight, raised, interrupted, with_column, WIDEST_TILE, ROW_SUMS, SUMS_LANES, PADDED_ROWS
// and the macros of loops.
#pragma once
#include "unified/long_sums.hpp"
#include "cpu/arithmetic.hpp"

namespace wl {

// y = alpha sum + beta y. If beta == 0, y is not read: it may hold NaN or be uninitialized.
template <class T>
WL_DEVICE void update(T& y, T sum, T alpha, T beta) {
  T result(0);
  multiply_add(result, alpha, sum);
  if (!(beta == T(0)))
    multiply_add(result, beta, y);
  y = result;
}

// A number of columns that is known at compile time.
template <int W>
struct columns_of {
  static constexpr int value = W;
};

// Calls body(columns_of<W>(), first) on tiles that cover columns [0, k), widest first: the sums of
// a tile stay in registers while the entries of a row are read.
template <int W = WIDEST_TILE, class Body>
WL_DEVICE void for_column_tiles(i64 k, const Body& body, i64 first = 0) {
  for (; first + W <= k; first += W)
    body(columns_of<W>(), first);
  if constexpr (W > 1)
    for_column_tiles<W / 2>(k, body, first);
}

// y[0:k] = alpha sum_e data[e stride] x(column(e), 0:k) + beta y[0:k] over e < n; in single
// precision n is at most PIECE_OF_SUM. If PADDED, a column below 0 marks padding.
template <bool PADDED = false, class S, class T, class Column>
inline void short_row_times_columns(i64 n, const S* data, i64 stride, const Column& column,
                                    mat<const T> x, T* y, i64 k, T alpha, T beta) {
  for_column_tiles(k, [&](auto columns, i64 first) {
    constexpr int W = decltype(columns)::value;
    T sums[W] = {};
    for (i64 e = 0; e < n; ++e) {
      const i64 at = column(e);
      if (PADDED && at < 0)
        continue;
      const T value = raised<T>(data[e * stride]);
      const T* const x_row = x.data + at * x.ld + first;
      WL_SIMD
      for (int w = 0; w < W; ++w)
        multiply_add(sums[w], value, x_row[w]);
    }
    for (int w = 0; w < W; ++w)
      update(y[first + w], sums[w], alpha, beta);
  });
}

// A stored value and the row of x by which it is multiplied; without_row if there is none.
template <class T>
struct met_term {
  T value;
  i64 row;
};
constexpr i64 without_row = -1;

// y[0:k] = alpha sum_e value x(row, 0:k) + beta y[0:k] over the terms e < n of a long row, which
// are met_terms: see long_sums.hpp.
template <class T, class Term>
WL_NOINLINE inline void long_sum_of_columns(i64 n, Term term, mat<const T> x, T* y, i64 k, T alpha,
                                            T beta) {
  for_column_tiles(k, [&](auto columns, i64 first) {
    constexpr int W = decltype(columns)::value;
    long_sum<T> totals[W] = {};
    for (i64 begin = 0; begin < n; begin += PIECE_OF_SUM) {
      const i64 end = begin + PIECE_OF_SUM < n ? begin + PIECE_OF_SUM : n;
      T sums[W] = {};
      for (i64 e = begin; e < end; ++e) {
        const met_term<T> met = term(e);
        if (met.row == without_row)
          continue;
        const T* const x_row = x.data + met.row * x.ld + first;
        WL_SIMD
        for (int w = 0; w < W; ++w)
          multiply_add(sums[w], met.value, x_row[w]);
      }
      for (int w = 0; w < W; ++w)
        totals[w].add(sums[w]);
    }
    for (int w = 0; w < W; ++w)
      update(y[first + w], totals[w].value(), alpha, beta);
  });
}

// The same as short_row_times_columns of a long row.
template <bool PADDED = false, class S, class T, class Column>
inline void long_row_times_columns(i64 n, const S* data, i64 stride, Column column, mat<const T> x,
                                   T* y, i64 k, T alpha, T beta) {
  const auto term = [=](i64 e) {
    const i64 at = column(e);
    if (PADDED && at < 0)
      return met_term<T>{T(), without_row};
    return met_term<T>{raised<T>(data[e * stride]), at};
  };
  long_sum_of_columns(n, term, x, y, k, alpha, beta);
}

// The same of a row of any length.
template <class S, class T, class Column>
inline void row_times_columns(i64 n, const S* data, i64 stride, const Column& column,
                              mat<const T> x, T* y, i64 k, T alpha, T beta) {
  if (sums_in_pieces<T> && n > PIECE_OF_SUM)
    long_row_times_columns(n, data, stride, column, x, y, k, alpha, beta);
  else
    short_row_times_columns(n, data, stride, column, x, y, k, alpha, beta);
}

} // namespace wl
