// S = alpha <C_i, B_j> A_ij + beta S on the pattern of A: a wave has up to 64 entries of a row.
#pragma once
#include "packs.hpp"

namespace wl {

// L lanes have V vectors each of a row; WL_WARP / L entries are side by side, and some more follow
// before the sums over lanes are taken. Row i of C stays in registers unless it is longer than
// these lanes hold; then pieces of it are loaded again for every step. WHOLE says that it is just
// as long.
template <int L, int V, int E, int WHOLE, class T, class I>
WL_DEVICE void csr_sddmm(const item& it, i64 items, i64 k, i64 batch, const I* bounds,
                         const I* target, const I* indices, const T* values, i64 values_step,
                         const T* C, i64 C_ld, i64 C_step, const T* B, i64 B_ld, i64 B_step,
                         T* sampled, i64 S_step, held_t<T> alpha, held_t<T> beta) {
  using S = held_t<T>;
  constexpr int side = WL_WARP / L, waves = WL_BLOCK / WL_WARP, width = L * V * E;
  constexpr int ahead = L < 8 / V ? L : 8 / V;
  const int lane = lane_of(it), group = lane / L, l = lane % L;
  const i64 strips = WHOLE ? 1 : (k + width - 1) / width, units = items * batch;
  for (i64 u = it.block() * waves + wave_of(it); u < units; u += it.blocks() * waves) {
    const unit_of unit(u, items, 1);
    const i64 begin = bounds[unit.i], end = bounds[unit.i + 1];
    const I of_row = target ? target[unit.i] : I(unit.i);
    const T* const of_C = row_at(C + unit.b * C_step, of_row, I(C_ld));
    const T* const of_B = B + unit.b * B_step;
    pack<T, E> mine[V] = {};
    if (strips == 1)
#pragma unroll
      for (int v = 0; v < V; ++v)
        mine[v] = load_part<WHOLE, T, E>((v * L + l) * E < k, of_C, (v * L + l) * E);
    for (i64 p = begin; p < end; p += side * ahead) {
      I column[ahead];
#pragma unroll
      for (int a = 0; a < ahead; ++a) {
        const i64 e = p + a * side + group;
        column[a] = indices[e < end ? e : end - 1]; // its product is not kept
      }
      S dots[ahead] = {};
      for (i64 strip = 0; strip < strips; ++strip) {
        const i64 first = strip * width + l * E;
        pack<T, E> row[ahead][V];
        if (strips > 1)
#pragma unroll
          for (int v = 0; v < V; ++v)
            mine[v] = load_part<WHOLE, T, E>(first + v * L * E < k, of_C, first + v * L * E);
#pragma unroll
        for (int a = 0; a < ahead; ++a)
#pragma unroll
          for (int v = 0; v < V; ++v)
            row[a][v] = load_part<WHOLE, T, E>(first + v * L * E < k,
                                               row_at(of_B, column[a], I(B_ld)), first + v * L * E);
#pragma unroll
        for (int a = 0; a < ahead; ++a)
#pragma unroll
          for (int v = 0; v < V; ++v)
            dots[a] = dot_pack<T, E>(dots[a], mine[v], row[a][v]);
      }
      S kept{};
#pragma unroll
      for (int a = 0; a < ahead; ++a) {
        const S dot = sum_of_lanes<L>(it, dots[a]);
        kept = l == a ? dot : kept;
      }
      const i64 e = p + l * side + group;
      if (l < ahead && e < end) {
        if (values)
          kept = kept * widen(values[unit.b * values_step + e]);
        store_narrowed(sampled[unit.b * S_step + e], kept, alpha, beta);
      }
    }
  }
}

} // namespace wl
