// Products of a dense row-major matrix. NumPy's BLAS cannot be put on a tape.
#pragma once

#include "parallel.hpp"
#include "spmv_operands.hpp"

namespace wl {

template <class T>
struct DenseArray {
  i64 m, n;
  const T* data;

  const T* row(i64 i) const { return data + i * n; }
};

namespace detail {

// Rows of A that read x together.
constexpr int kDenseRows = 4;

// Rows of x that all rows of A pass over while they are in the second-level cache: 1024 of 16
// columns of doubles are 128 KB.
constexpr i64 kDenseDepth = 1024;

// The products of G rows of A with one contiguous column.
template <int G, class T>
void dense_dots(const DenseArray<T>& A, const SpmvOperands<T>& o, i64 first) {
  constexpr int L = 64 / sizeof(real_t<T>);
  const T* const x = o.x.data;
  T part[G][L] = {};
  i64 j = 0;
  for (; j + L <= A.n; j += L)
    for (int g = 0; g < G; ++g) {
      const T* const row = A.row(first + g) + j;
#pragma omp simd
      for (int l = 0; l < L; ++l)
        part[g][l] += row[l] * x[j + l];
    }
  for (int g = 0; g < G; ++g) {
    T sum(0);
    for (i64 rest = j; rest < A.n; ++rest)
      sum += A.row(first + g)[rest] * x[rest];
    for (int l = 0; l < L; ++l)
      sum += part[g][l];
    update(o.y(first + g, 0), sum, o.alpha, o.beta);
  }
}

// y(first : first + G, c : c + W) = alpha (columns [begin, end) of A) x + beta y.
template <int G, int W, class T>
void dense_tile(const DenseArray<T>& A, const SpmvOperands<T>& o, i64 first, i64 c, i64 begin,
                i64 end, T beta) {
  T sums[G][W] = {};
  for (i64 j = begin; j < end; ++j) {
    const T* const x = o.x.data + j * o.x.ld + c;
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      const T value = A.row(first + g)[j];
#pragma omp simd
      for (int w = 0; w < W; ++w)
        sums[g][w] += value * x[w];
    }
  }
  for (int g = 0; g < G; ++g)
    for (int w = 0; w < W; ++w)
      update(o.y(first + g, c + w), sums[g][w], o.alpha, beta);
}

template <class T>
void dense_rows(const DenseArray<T>& A, const SpmvOperands<T>& o, i64 begin, i64 end) {
  if (o.k == 1 && o.x.ld == 1) {
    i64 i = begin;
    for (; i + kDenseRows <= end; i += kDenseRows)
      dense_dots<kDenseRows>(A, o, i);
    for (; i < end; ++i)
      dense_dots<1>(A, o, i);
    return;
  }
  i64 from = 0;
  do { // once even if A has no columns, for beta
    const i64 to = std::min(from + kDenseDepth, A.n);
    const T beta = from == 0 ? o.beta : T(1);
    for_column_tiles(o.k, [&](auto tile, i64 c) {
      constexpr int W = decltype(tile)::value;
      if (interrupted()) // a wide x has so many tiles that all of them take long
        return;
      i64 i = begin;
      for (; i + kDenseRows <= end; i += kDenseRows)
        dense_tile<kDenseRows, W>(A, o, i, c, from, to, beta);
      for (; i < end; ++i)
        dense_tile<1, W>(A, o, i, c, from, to, beta);
    });
    from = to;
  } while (from < A.n && !interrupted());
}

} // namespace detail

template <class T>
void dense_spmv(const DenseArray<T>& A, const SpmvOperands<T>& o, int threads) {
  const int parts = A.m * A.n * o.k < kSerialEntries ? 1 : threads;
  const i64 piece = rows_of_a_piece(A.m, A.m * A.n * o.k);
  for_parts(parts, [&](int part) {
    const Share share(A.m, part, parts);
    in_pieces(share.begin, share.end, std::max<i64>(piece, 64),
              [&](i64 begin, i64 end) { detail::dense_rows(A, o, begin, end); });
  });
}

} // namespace wl
