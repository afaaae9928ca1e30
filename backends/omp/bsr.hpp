// Products of block sparse rows: the entries of a block share one column index.
#pragma once

#include "parallel.hpp"
#include "spmv_csr.hpp"
#include "spmv_operands.hpp"

namespace wl {

template <class T, class I>
struct BsrArrays {
  i64 m, n; // of blocks
  i64 r, c;
  const I *indptr, *indices;
  const T* data;

  i64 nnz() const { return indptr[m] * r * c; }
};

namespace detail {

// Block rows [begin, end) with one column and blocks of S x S: the block row's sums are in
// registers.
template <int S, class T, class I>
void bsr_square(const BsrArrays<T, I>& A, const SpmvOperands<T>& o, i64 begin, i64 end) {
  for (i64 row = begin; row < end; ++row) {
    T sums[S] = {};
    for (i64 b = A.indptr[row]; b < A.indptr[row + 1]; ++b) {
      const T* const block = A.data + b * S * S;
      const T* const x = o.x.data + static_cast<i64>(A.indices[b]) * S;
      prefetch_eight(block + kCsrAhead);
#pragma GCC unroll 8
      for (int i = 0; i < S; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < S; ++j)
          multiply_add(sums[i], block[i * S + j], x[j]);
    }
    for (int i = 0; i < S; ++i)
      update(o.y(row * S + i, 0), sums[i], o.alpha, o.beta);
  }
}

// Block rows [begin, end) of blocks of any size and any number of columns.
template <class T, class I>
void bsr_any(const BsrArrays<T, I>& A, const SpmvOperands<T>& o, i64 begin, i64 end) {
  for (i64 row = begin; row < end; ++row)
    for (i64 i = 0; i < A.r; ++i)
      for_column_tiles(o.k, [&](auto tile, i64 first) {
        constexpr int W = decltype(tile)::value;
        T sums[W] = {};
        for (i64 b = A.indptr[row]; b < A.indptr[row + 1]; ++b) {
          const T* const values = A.data + (b * A.r + i) * A.c;
          const T* const x = o.x.data + A.indices[b] * A.c * o.x.ld + first;
          for (i64 j = 0; j < A.c; ++j) {
#pragma omp simd
            for (int w = 0; w < W; ++w)
              multiply_add(sums[w], values[j], x[j * o.x.ld + w]);
          }
        }
        for (int w = 0; w < W; ++w)
          update(o.y(row * A.r + i, first + w), sums[w], o.alpha, o.beta);
      });
}

template <class T, class I>
void bsr_rows(const BsrArrays<T, I>& A, const SpmvOperands<T>& o, i64 begin, i64 end) {
  const i64 size = o.k == 1 && o.x.ld == 1 && A.r == A.c ? A.r : 0;
  switch (size) {
  case 2:
    return bsr_square<2>(A, o, begin, end);
  case 3:
    return bsr_square<3>(A, o, begin, end);
  case 4:
    return bsr_square<4>(A, o, begin, end);
  default:
    return bsr_any(A, o, begin, end);
  }
}

} // namespace detail

template <class T, class I>
void bsr_spmv(const BsrArrays<T, I>& A, const SpmvOperands<T>& o, int threads) {
  const i64 piece = rows_of_a_piece(A.m, A.nnz() * o.k);
  const auto rows = [&](i64 begin, i64 end) {
    in_pieces(begin, end, piece, [&](i64 from, i64 to) { detail::bsr_rows(A, o, from, to); });
  };
  if (threads == 1 || A.nnz() * o.k < kSerialEntries)
    return rows(0, A.m);
  const std::vector<I> bounds = balanced_rows(A.indptr, static_cast<I>(A.m), threads);
  for_parts(threads, [&](int part) { rows(bounds[part], bounds[part + 1]); });
}

} // namespace wl
