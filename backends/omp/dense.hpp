// Products of a dense row-major matrix. NumPy's BLAS cannot be put on a tape.
#pragma once

#include "cpu/dense_rows.hpp"
#include "omp/parallel.hpp"
#include "omp/spmv_operands.hpp"

namespace wl {

template <class T>
void dense_spmv(const dense_array<T>& A, const SpmvOperands<T>& o, int threads) {
  const int parts = A.m * A.n * o.k < kSerialEntries ? 1 : threads;
  const i64 piece = rows_of_a_piece(A.m, A.m * A.n * o.k);
  for_parts(parts, [&](int part) {
    const Share share(A.m, part, parts);
    in_pieces(share.begin, share.end, std::max<i64>(piece, 64), [&](i64 begin, i64 end) {
      dense_rows(A, begin, end, o.x, o.y, o.k, o.alpha, o.beta);
    });
  });
}

} // namespace wl
