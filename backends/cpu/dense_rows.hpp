// Products of a dense row-major matrix.
#pragma once
#include "columns.hpp"

namespace wl {

template <class T>
struct dense_array {
  i64 m, n;
  const T* data;

  const T* row(i64 i) const { return data + i * n; }
};

// Rows of A that read x together.
constexpr int DENSE_ROWS = 4;

// Rows of x that all rows of A pass over while they are in the second-level cache: 1024 of 16
// columns of doubles are 128 KB.
constexpr i64 DENSE_DEPTH = 1024;

// The products of G rows of A with one contiguous column.
template <int G, class T>
inline void dense_dots(const dense_array<T>& A, i64 first, const T* x, mat<T> y, T alpha, T beta) {
  constexpr int L = 64 / sizeof(real_t<T>);
  T part[G][L] = {};
  i64 j = 0;
  for (; j + L <= A.n; j += L)
    for (int g = 0; g < G; ++g) {
      const T* const row = A.row(first + g) + j;
      WL_SIMD
      for (int l = 0; l < L; ++l)
        multiply_add(part[g][l], row[l], x[j + l]);
    }
  for (int g = 0; g < G; ++g) {
    T sum(0);
    for (i64 rest = j; rest < A.n; ++rest)
      multiply_add(sum, A.row(first + g)[rest], x[rest]);
    for (int l = 0; l < L; ++l)
      sum += part[g][l];
    update(y(first + g, 0), sum, alpha, beta);
  }
}

// y(first : first + G, c : c + W) = alpha (columns [begin, end) of A) x + beta y.
template <int G, int W, class T>
inline void dense_tile(const dense_array<T>& A, i64 first, i64 c, i64 begin, i64 end,
                       mat<const T> x, mat<T> y, T alpha, T beta) {
  T sums[G][W] = {};
  for (i64 j = begin; j < end; ++j) {
    const T* const of_x = &x(j, c);
    WL_UNROLL
    for (int g = 0; g < G; ++g) {
      const T value = A.row(first + g)[j];
      WL_SIMD
      for (int w = 0; w < W; ++w)
        multiply_add(sums[g][w], value, of_x[w]);
    }
  }
  for (int g = 0; g < G; ++g)
    for (int w = 0; w < W; ++w)
      update(y(first + g, c + w), sums[g][w], alpha, beta);
}

// y = alpha A x + beta y for rows [begin, end).
template <class T>
inline void dense_rows(const dense_array<T>& A, i64 begin, i64 end, mat<const T> x, mat<T> y, i64 k,
                       T alpha, T beta) {
  if (k == 1 && x.ld == 1) {
    i64 i = begin;
    for (; i + DENSE_ROWS <= end; i += DENSE_ROWS)
      dense_dots<DENSE_ROWS>(A, i, x.data, y, alpha, beta);
    for (; i < end; ++i)
      dense_dots<1>(A, i, x.data, y, alpha, beta);
    return;
  }
  i64 from = 0;
  do { // once even if A has no columns, for beta
    const i64 to = A.n - from < DENSE_DEPTH ? A.n : from + DENSE_DEPTH;
    const T of_y = from == 0 ? beta : T(1);
    for_column_tiles(k, [&](auto columns, i64 c) {
      constexpr int W = decltype(columns)::value;
      if (interrupted()) // a wide x has enough tiles for a long run
        return;
      i64 i = begin;
      for (; i + DENSE_ROWS <= end; i += DENSE_ROWS)
        dense_tile<DENSE_ROWS, W>(A, i, c, from, to, x, y, alpha, of_y);
      for (; i < end; ++i)
        dense_tile<1, W>(A, i, c, from, to, x, y, alpha, of_y);
    });
    from = to;
  } while (from < A.n && !interrupted());
}

} // namespace wl
