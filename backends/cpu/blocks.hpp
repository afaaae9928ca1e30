// Products of block sparse rows: the entries of a block share one column index.
#pragma once
#include "row_dot.hpp"

namespace wl {

template <class T, class I>
struct bsr_arrays {
  i64 m, n; // of blocks
  i64 r, c;
  const I *indptr, *indices;
  const T* data;

  i64 nnz() const { return indptr[m] * r * c; }
};

// Block rows [begin, end) with one column and blocks of SIZE x SIZE: the block row's sums are in
// registers.
template <int SIZE, class T, class I>
inline void bsr_square(const bsr_arrays<T, I>& A, i64 begin, i64 end, mat<const T> x, mat<T> y,
                       T alpha, T beta) {
  for (i64 row = begin; row < end; ++row) {
    T sums[SIZE] = {};
    for (i64 b = A.indptr[row]; b < A.indptr[row + 1]; ++b) {
      const T* const block = A.data + b * SIZE * SIZE;
      const T* const of_x = x.data + i64(A.indices[b]) * SIZE;
      prefetch_eight(block + AHEAD);
      WL_UNROLL
      for (int i = 0; i < SIZE; ++i) {
        WL_UNROLL
        for (int j = 0; j < SIZE; ++j)
          multiply_add(sums[i], block[i * SIZE + j], of_x[j]);
      }
    }
    for (int i = 0; i < SIZE; ++i)
      update(y(row * SIZE + i, 0), sums[i], alpha, beta);
  }
}

// Block rows [begin, end) of blocks of any size and any number of columns.
template <class T, class I>
inline void bsr_any(const bsr_arrays<T, I>& A, i64 begin, i64 end, mat<const T> x, mat<T> y, i64 k,
                    T alpha, T beta) {
  const i64 c = A.c, ld = x.ld;
  for (i64 row = begin; row < end; ++row)
    for (i64 i = 0; i < A.r; ++i)
      for_column_tiles(k, [&](auto columns, i64 first) {
        constexpr int W = decltype(columns)::value;
        T sums[W] = {};
        for (i64 b = A.indptr[row]; b < A.indptr[row + 1]; ++b) {
          const T* const values = A.data + (b * A.r + i) * c;
          const T* const of_x = x.data + A.indices[b] * c * ld + first;
          for (i64 j = 0; j < c; ++j) {
            const T value = values[j];
            WL_SIMD
            for (int w = 0; w < W; ++w)
              multiply_add(sums[w], value, of_x[j * ld + w]);
          }
        }
        for (int w = 0; w < W; ++w)
          update(y(row * A.r + i, first + w), sums[w], alpha, beta);
      });
}

// y = alpha A x + beta y for block rows [begin, end).
template <class T, class I>
inline void bsr_rows(const bsr_arrays<T, I>& A, i64 begin, i64 end, mat<const T> x, mat<T> y, i64 k,
                     T alpha, T beta) {
  switch (k == 1 && x.ld == 1 && A.r == A.c ? A.r : 0) {
  case 2:
    return bsr_square<2>(A, begin, end, x, y, alpha, beta);
  case 3:
    return bsr_square<3>(A, begin, end, x, y, alpha, beta);
  case 4:
    return bsr_square<4>(A, begin, end, x, y, alpha, beta);
  default:
    return bsr_any(A, begin, end, x, y, k, alpha, beta);
  }
}

} // namespace wl
