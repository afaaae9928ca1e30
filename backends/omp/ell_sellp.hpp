// Products of formats with padded rows, ELL and SELL-P: how threads share them.
#pragma once

#include "cpu/padded.hpp"
#include "omp/parallel.hpp"
#include "omp/row_cuts.hpp"
#include "omp/spmv_operands.hpp"

namespace wl {

template <class T, class I>
void ell_spmv(const ell_arrays<T, I>& A, const SpmvOperands<T>& o, int threads) {
  const i64 work = A.m * A.width * o.k, piece = rows_of_a_piece(A.tiles(), work);
  const int parts = work < kSerialEntries ? 1 : threads;
  for_parts(parts, [&](int part) {
    const Share share(A.tiles(), part, parts);
    in_pieces(share.begin, share.end, piece, [&](i64 begin, i64 end) {
      ell_tiles(A, begin, end, o.x, o.y, o.k, o.alpha, o.beta);
    });
  });
}

template <class T, class I>
void sellp_spmv(const sellp_arrays<T, I>& A, const SpmvOperands<T>& o, int threads) {
  const int parts = A.slice_ptr[A.slices] * o.k < kSerialEntries ? 1 : threads;
  const std::vector<I> bounds = balanced_rows(A.slice_ptr, static_cast<I>(A.slices), parts);
  const i64 piece = rows_of_a_piece(A.slices, A.slice_ptr[A.slices] * o.k);
  for_parts(parts, [&](int part) {
    in_pieces(bounds[part], bounds[part + 1], piece, [&](i64 begin, i64 end) {
      sellp_slices(A, begin, end, o.x, o.y, o.k, o.alpha, o.beta);
    });
  });
}

} // namespace wl
