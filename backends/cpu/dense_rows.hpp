// Products of a dense row-major matrix.
#pragma once
#include "cpu/columns.hpp"

namespace wl {

template <class T>
struct dense_array {
  i64 m, n;
  const T* data;

  const T* row(i64 i) const { return data + i * n; }
};

// The number of rows of A for which x is read once.
constexpr int DENSE_ROWS = 4;

// The number of rows of x that all rows of A use while they are in the second-level cache: 1024
// rows of 16 columns of doubles are 128 KB.
constexpr i64 DENSE_DEPTH = 1024;

// sums[g] = columns [begin, end) of row first + g of A times a contiguous x.
template <int G, class T>
WL_DEVICE void dense_sums(const dense_array<T>& A, i64 first, i64 begin, i64 end, const T* x,
                          T (&sums)[G]) {
  constexpr int L = 64 / sizeof(real_t<T>);
  T part[G][L] = {};
  i64 j = begin;
  for (; j + L <= end; j += L)
    for (int g = 0; g < G; ++g) {
      const T* const row = A.row(first + g) + j;
      WL_SIMD
      for (int l = 0; l < L; ++l)
        multiply_add(part[g][l], row[l], x[j + l]);
    }
  for (int g = 0; g < G; ++g) {
    T sum(0);
    for (i64 rest = j; rest < end; ++rest)
      multiply_add(sum, A.row(first + g)[rest], x[rest]);
    for (int l = 0; l < L; ++l)
      sum += part[g][l];
    sums[g] = sum;
  }
}

// Entries of a row that are added up before their sum joins others: see long_sums.hpp.
constexpr i64 DENSE_PIECE = 16 * PIECE_OF_SUM;

// The products of G rows of A with one contiguous column.
template <int G, class T>
inline void dense_dots(const dense_array<T>& A, i64 first, const T* x, mat<T> y, T alpha, T beta) {
  T sums[G];
  if (sums_in_pieces<T> && A.n > DENSE_PIECE) {
    long_sum<T> totals[G] = {};
    for (i64 begin = 0; begin < A.n; begin += DENSE_PIECE) {
      const i64 end = begin + DENSE_PIECE < A.n ? begin + DENSE_PIECE : A.n;
      dense_sums<G>(A, first, begin, end, x, sums);
      for (int g = 0; g < G; ++g)
        totals[g].add(sums[g]);
    }
    for (int g = 0; g < G; ++g)
      sums[g] = totals[g].value();
  } else {
    dense_sums<G>(A, first, 0, A.n, x, sums);
  }
  for (int g = 0; g < G; ++g)
    update(y(first + g, 0), sums[g], alpha, beta);
}

// sums = columns [begin, end) of rows first to first + G of A times x(:, c : c + W).
template <int G, int W, class T>
WL_DEVICE void dense_block(const dense_array<T>& A, i64 first, i64 c, i64 begin, i64 end,
                           mat<const T> x, T (&sums)[G][W]) {
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
}

// y(first : first + G, c : c + W) = alpha (columns [begin, end) of A) x + beta y.
template <int G, int W, class T>
inline void dense_tile(const dense_array<T>& A, i64 first, i64 c, i64 begin, i64 end,
                       mat<const T> x, mat<T> y, T alpha, T beta) {
  T sums[G][W] = {};
  dense_block<G, W>(A, first, c, begin, end, x, sums);
  for (int g = 0; g < G; ++g)
    for (int w = 0; w < W; ++w)
      update(y(first + g, c + w), sums[g][w], alpha, beta);
}

// The number of rows that keep their sums of several columns while all columns of A are read.
constexpr int DENSE_GROUP = 64;

// The same for all columns of A, and up to DENSE_GROUP rows: see long_sums.hpp.
template <int W, class T>
inline void long_dense_rows(const dense_array<T>& A, i64 first, i64 last, i64 c, mat<const T> x,
                            mat<T> y, T alpha, T beta) {
  long_sum<T> totals[DENSE_GROUP][W] = {};
  for (i64 begin = 0; begin < A.n; begin += PIECE_OF_SUM) {
    const i64 end = begin + PIECE_OF_SUM < A.n ? begin + PIECE_OF_SUM : A.n;
    i64 i = first;
    for (; i + DENSE_ROWS <= last; i += DENSE_ROWS) {
      T sums[DENSE_ROWS][W] = {};
      dense_block<DENSE_ROWS, W>(A, i, c, begin, end, x, sums);
      for (int g = 0; g < DENSE_ROWS; ++g)
        for (int w = 0; w < W; ++w)
          totals[i - first + g][w].add(sums[g][w]);
    }
    for (; i < last; ++i) {
      T sums[1][W] = {};
      dense_block<1, W>(A, i, c, begin, end, x, sums);
      for (int w = 0; w < W; ++w)
        totals[i - first][w].add(sums[0][w]);
    }
  }
  for (i64 i = first; i < last; ++i)
    for (int w = 0; w < W; ++w)
      update(y(i, c + w), totals[i - first][w].value(), alpha, beta);
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
  if constexpr (sums_in_pieces<T>)
    if (A.n > DENSE_PIECE) {
      for (i64 i = begin; i < end && !interrupted(); i += DENSE_GROUP)
        for_column_tiles(k, [&](auto columns, i64 c) {
          long_dense_rows<decltype(columns)::value>(
              A, i, end - i < DENSE_GROUP ? end : i + DENSE_GROUP, c, x, y, alpha, beta);
        });
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
