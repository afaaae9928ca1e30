// S = alpha <C_i, B_j> A_ij + beta S on the pattern of A: each wave processes one entry per lane,
// from any rows.
#pragma once
#include "simt/dots.hpp"

namespace wl {

// As csr_sddmm, but every entry loads its row of C, and `rows` holds the row of each entry, so that
// a wave finds its work with one load. 2 A vectors are in flight.
template <int L, int V, int E, int A, int WHOLE, class T, class I>
WL_DEVICE void flat_sddmm(const item& it, i64 nnz, i64 k, i64 batch, const I* rows,
                          const I* indices, const T* values, i64 values_step, const T* C, i64 C_ld,
                          i64 C_step, const T* B, i64 B_ld, i64 B_step, T* sampled, i64 S_step,
                          held_t<T> alpha, held_t<T> beta) {
  using S = held_t<T>;
  constexpr int waves = WL_BLOCK / WL_WARP, width = L * V * E, ahead = L < A ? L : A;
  constexpr bool in_strips = has_strips<L, V, WHOLE>;
  // without columns the operands may have no memory
  const i64 strips = in_strips ? (k + width - 1) / width : WHOLE || k > 0;
  const i64 waves_each = (nnz + WL_WARP - 1) / WL_WARP;
  const i64 units = WHOLE == ALONE ? waves_each : waves_each * batch;
  const I C_row = WHOLE == ALONE ? I(width) : I(C_ld), B_row = WHOLE == ALONE ? I(width) : I(B_ld);
  const batch_of<L, I> me(it);
  for (i64 u = it.block() * waves + wave_of(it); u < units; u += it.blocks() * waves) {
    const unit_of unit(u, WHOLE == ALONE ? u + 1 : waves_each, 1);
    const I begin = I(unit.i * WL_WARP);
    const int count = me.count(begin, I(nnz));
    const I own = me.own(begin, count), row = read_once(rows + own),
            column = read_once(indices + own);
    const T* const of_C = C + unit.b * C_step;
    const T* const of_B = B + unit.b * B_step;
    S dot{};
#pragma unroll 1
    for (int s = 0; s * me.side < count; s += ahead) {
      dot_of_strips<in_strips, S> parts[ahead];
      const T *of_i[ahead], *of_j[ahead];
#pragma unroll
      for (int a = 0; a < ahead; ++a) {
        of_i[a] = row_at(of_C, shuffle(row, me.lane_with(s + a)), C_row);
        of_j[a] = row_at(of_B, shuffle(column, me.lane_with(s + a)), B_row);
      }
      for (i64 strip = 0; strip < strips; ++strip) {
        const i64 first = strip * width + me.l * E;
        pack<T, E> left[ahead][V], right[ahead][V];
#pragma unroll
        for (int a = 0; a < ahead; ++a)
#pragma unroll
          for (int v = 0; v < V; ++v) {
            const i64 at = first + v * L * E;
            left[a][v] = load_part<WHOLE, T, E>(at < k, of_i[a], at);
            right[a][v] = load_part<WHOLE, T, E>(at < k, of_j[a], at);
          }
#pragma unroll
        for (int a = 0; a < ahead; ++a)
          parts[a].add(left[a], right[a]);
      }
      S dots[ahead];
#pragma unroll
      for (int a = 0; a < ahead; ++a)
        dots[a] = parts[a].value();
      const S total = reduce_scatter<L>(it, dots);
      dot = me.l / ahead == s / ahead ? total : dot;
    }
    if (me.place(me.l) < count) {
      const i64 e = i64(own);
      if (values)
        dot = dot * widen(values[unit.b * values_step + e]);
      store_narrowed(sampled[unit.b * S_step + e], dot, alpha, beta);
    }
  }
}

} // namespace wl
