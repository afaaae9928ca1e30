// Products of block sparse rows: the entries of a block share one column index.
#pragma once
#include "cpu/row_dot.hpp"

namespace wl {

template <class T, class I>
struct bsr_arrays {
  i64 m, n; // of blocks
  i64 r, c;
  const I *indptr, *indices;
  const T* data;

  i64 nnz() const { return indptr[m] * r * c; }
};

// sums[i] += row i of blocks [begin, end) of SIZE x SIZE, times x.
template <int SIZE, class T, class I>
WL_DEVICE void add_squares(const bsr_arrays<T, I>& A, i64 begin, i64 end, mat<const T> x,
                           T (&sums)[SIZE]) {
  for (i64 b = begin; b < end; ++b) {
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
}

// One column of a long block row: see long_sums.hpp.
template <int SIZE, class T, class I>
WL_NOINLINE inline void long_square_row(const bsr_arrays<T, I>& A, i64 row, mat<const T> x,
                                        mat<T> y, T alpha, T beta) {
  constexpr i64 piece = PIECE_OF_SUM / SIZE;
  const i64 end = A.indptr[row + 1];
  long_sum<T> totals[SIZE] = {};
  for (i64 begin = A.indptr[row]; begin < end; begin += piece) {
    T part[SIZE] = {};
    add_squares<SIZE>(A, begin, end - begin < piece ? end : begin + piece, x, part);
    for (int i = 0; i < SIZE; ++i)
      totals[i].add(part[i]);
  }
  for (int i = 0; i < SIZE; ++i)
    update(y(row * SIZE + i, 0), totals[i].value(), alpha, beta);
}

// Block rows [begin, end) with one column and blocks of SIZE x SIZE: the block row's sums are in
// registers.
template <int SIZE, class T, class I>
inline void bsr_square(const bsr_arrays<T, I>& A, i64 begin, i64 end, mat<const T> x, mat<T> y,
                       T alpha, T beta) {
  for (i64 row = begin; row < end; ++row) {
    const i64 first = A.indptr[row], last = A.indptr[row + 1];
    if constexpr (sums_in_pieces<T>)
      if ((last - first) * SIZE > PIECE_OF_SUM) {
        long_square_row<SIZE>(A, row, x, y, alpha, beta);
        continue;
      }
    T sums[SIZE] = {};
    add_squares<SIZE>(A, first, last, x, sums);
    for (int i = 0; i < SIZE; ++i)
      update(y(row * SIZE + i, 0), sums[i], alpha, beta);
  }
}

// One row of a long block row.
template <class T, class I>
inline void long_block_row(const bsr_arrays<T, I>& A, i64 row, i64 i, mat<const T> x, mat<T> y,
                           i64 k, T alpha, T beta) {
  const i64 c = A.c, first_block = A.indptr[row], n = (A.indptr[row + 1] - first_block) * c;
  const auto term = [=, &A](i64 e) {
    const i64 block = first_block + e / c, j = e % c;
    return met_term<T>{A.data[(block * A.r + i) * c + j], A.indices[block] * c + j};
  };
  long_sum_of_columns(n, term, x, &y(row * A.r + i, 0), k, alpha, beta);
}

// Block rows [begin, end) of blocks of any size and any number of columns.
template <class T, class I>
WL_NOINLINE inline void bsr_any(const bsr_arrays<T, I>& A, i64 begin, i64 end, mat<const T> x,
                                mat<T> y, i64 k, T alpha, T beta) {
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

// The same, where rows may be long.
template <class T, class I>
inline void bsr_of_any_length(const bsr_arrays<T, I>& A, i64 begin, i64 end, mat<const T> x,
                              mat<T> y, i64 k, T alpha, T beta) {
  if constexpr (sums_in_pieces<T>)
    for (i64 row = begin; row < end; ++row)
      if ((A.indptr[row + 1] - A.indptr[row]) * A.c > PIECE_OF_SUM) {
        bsr_any(A, begin, row, x, y, k, alpha, beta);
        for (i64 i = 0; i < A.r; ++i)
          long_block_row(A, row, i, x, y, k, alpha, beta);
        begin = row + 1;
      }
  bsr_any(A, begin, end, x, y, k, alpha, beta);
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
    return bsr_of_any_length(A, begin, end, x, y, k, alpha, beta);
  }
}

} // namespace wl
