// S = alpha <C_i, B_j> A_ij + beta S on the pattern of A, as the plainest kernel does it: a
// work-item has one entry.
#pragma once
#include "simt/packs.hpp"

namespace wl {

template <int E, class T, class I>
WL_DEVICE void entry_sddmm(const item& it, i64 nnz, i64 k, i64 batch, const I* rows,
                           const I* indices, const T* values, i64 values_step, const T* C, i64 C_ld,
                           i64 C_step, const T* B, i64 B_ld, i64 B_step, T* sampled, i64 S_step,
                           held_t<T> alpha, held_t<T> beta) {
  const i64 step = it.blocks() * WL_BLOCK, work = nnz * batch;
  for (i64 w = it.block() * WL_BLOCK + it.thread(); w < work; w += step) {
    const i64 b = w / nnz, e = w - b * nnz;
    const T* const of_C = row_at(C + b * C_step, rows[e], I(C_ld));
    const T* const of_B = row_at(B + b * B_step, indices[e], I(B_ld));
    held_t<T> dot{};
    for (i64 c = 0; c < k; c += E)
      dot = dot_pack<T, E>(dot, load_pack<T, E>(of_C + c), load_pack<T, E>(of_B + c));
    if (values)
      dot = dot * widen(values[b * values_step + e]);
    store_narrowed(sampled[b * S_step + e], dot, alpha, beta);
  }
}

} // namespace wl
