// Products of block sparse rows: equal shares of blocks for each thread.
#pragma once

#include "cpu/blocks.hpp"
#include "omp/parallel.hpp"
#include "omp/row_cuts.hpp"
#include "omp/spmv_operands.hpp"

namespace wl {

template <class T, class I>
void bsr_spmv(const bsr_arrays<T, I>& A, const SpmvOperands<T>& o, int threads) {
  const i64 piece = rows_of_a_piece(A.m, A.nnz() * o.k);
  const auto rows = [&](i64 begin, i64 end) {
    in_pieces(begin, end, piece,
              [&](i64 from, i64 to) { bsr_rows(A, from, to, o.x, o.y, o.k, o.alpha, o.beta); });
  };
  if (threads == 1 || A.nnz() * o.k < kSerialEntries)
    return rows(0, A.m);
  const std::vector<I> bounds = balanced_rows(A.indptr, static_cast<I>(A.m), threads);
  for_parts(threads, [&](int part) { rows(bounds[part], bounds[part + 1]); });
}

} // namespace wl
