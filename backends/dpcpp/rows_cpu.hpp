// Products of sparse and dense matrices with blocks of vectors on CPU devices: a work-group is one
// work-item, and has its own rows (or parts of a partition). The functions are in backends/cpu.
#pragma once
#include "dpcpp/arithmetic.hpp"
#include "cpu/blocks.hpp"
#include "cpu/csr.hpp"
#include "cpu/dense_rows.hpp"
#include "cpu/padded.hpp"
#include "cpu/patterns.hpp"

static_assert(WL_BLOCK == 1, "this is for work-groups of one");

namespace wl {

// The share of `count` items that a work-group processes.
struct share {
  i64 begin, end;
  WL_DEVICE share(const item& it, i64 count)
      : begin(count * it.block() / it.blocks()), end(count * (it.block() + 1) / it.blocks()) {}
};

// Part p covers row cut_row[p], entry cut_entry[p], up to the next cut.
template <class T, class I, class S>
WL_DEVICE void csr_parts(const item& it, i64 parts, const i64* cut_row, const i64* cut_entry, i64 k,
                         const I* indptr, const I* indices, const S* data, mat<const T> x, mat<T> y,
                         T alpha, T beta, T* carry) {
  for (i64 p = it.block(); p < parts; p += it.blocks())
    csr_part({cut_row[p], cut_entry[p]}, {cut_row[p + 1], cut_entry[p + 1]}, indptr, indices, data,
             x, y, k, alpha, beta, carry + p * k, [=](i64 row, i64 last) {
               csr_rows(row, last, indptr, indices, data, x, y, k, alpha, beta);
             });
}

// One work-item adds the later pieces of rows.
template <class T, class I>
WL_DEVICE void csr_carry(const item& it, i64 parts, const i64* cut_row, const i64* cut_entry, i64 k,
                         const I* indptr, mat<T> y, const T* carry) {
  if (it.block() == 0)
    add_carries(
        parts, [=](i64 p) { return row_cut{cut_row[p], cut_entry[p]}; }, indptr, y, k, carry);
}

// Part p has runs from first_run[p] and rows from cut_row[p].
template <class T, class I, class S>
WL_DEVICE void csr_patterns(const item& it, i64 parts, const i64* cut_row, const i32* first_run,
                            const i32* run_end, const i32* run_pattern, const i32* pattern_ptr,
                            const i32* offsets, i64 k, const I* indptr, const S* values,
                            mat<const T> x, mat<T> y, T alpha, T beta) {
  const row_patterns<i32, i32> patterns{run_end, run_pattern, pattern_ptr, offsets};
  for (i64 p = it.block(); p < parts; p += it.blocks()) {
    const i64 row = cut_row[p];
    pattern_rows(row, cut_row[p + 1], first_run[p], patterns, values + indptr[row], x, y, k, alpha,
                 beta);
  }
}

template <class T, class I>
WL_DEVICE void ell_cpu(const item& it, i64 m, i64 n, i64 k, i64 width, const T* data,
                       const I* indices, mat<const T> x, mat<T> y, T alpha, T beta) {
  const ell_arrays<T, I> A{m, n, width, indices, data};
  const share mine(it, A.tiles());
  ell_tiles(A, mine.begin, mine.end, x, y, k, alpha, beta);
}

template <class T, class I>
WL_DEVICE void sellp_cpu(const item& it, i64 m, i64 n, i64 k, i64 slice_size, const T* data,
                         const I* indices, const I* slice_ptr, const I* permutation, mat<const T> x,
                         mat<T> y, T alpha, T beta) {
  const i64 slices = (m + slice_size - 1) / slice_size;
  const share mine(it, slices);
  sellp_slices(sellp_arrays<T, I>{m, n, slices, slice_size, slice_ptr, permutation, indices, data},
               mine.begin, mine.end, x, y, k, alpha, beta);
}

template <class T, class I>
WL_DEVICE void bsr_cpu(const item& it, i64 block_rows, i64 k, i64 r, i64 c, const I* indptr,
                       const I* indices, const T* data, mat<const T> x, mat<T> y, T alpha, T beta) {
  const share mine(it, block_rows);
  bsr_rows(bsr_arrays<T, I>{block_rows, 0, r, c, indptr, indices, data}, mine.begin, mine.end, x, y,
           k, alpha, beta);
}

template <class T>
WL_DEVICE void dense_cpu(const item& it, i64 m, i64 n, i64 k, const T* data, mat<const T> x,
                         mat<T> y, T alpha, T beta) {
  const share mine(it, m);
  dense_rows(dense_array<T>{m, n, data}, mine.begin, mine.end, x, y, k, alpha, beta);
}

template <class T, class I>
WL_DEVICE void csr_diagonal_cpu(const item& it, i64 count, const I* indptr, const I* indices,
                                const T* data, T* d) {
  const share mine(it, count);
  for (i64 row = mine.begin; row < mine.end; ++row) {
    T sum{};
    for (i64 e = indptr[row]; e < indptr[row + 1]; ++e)
      if (indices[e] == row)
        sum += data[e];
    d[row] = sum;
  }
}

} // namespace wl
