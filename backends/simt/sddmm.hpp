// S = alpha <C_i, B_j> A_ij + beta S on the pattern of A: a wave processes entries of one row.
#pragma once
#include "simt/dots.hpp"

namespace wl {

// L lanes hold V vectors each of a row, so that WL_WARP / L entries are processed in parallel. Each
// group of lanes loads A rows before it multiplies the first. Row i of C stays in registers unless
// it is longer than the lanes hold; then pieces of it are loaded again for every batch. WHOLE: it
// is exactly as long as the lanes hold.
template <int L, int V, int E, int A, int WHOLE, class T, class I>
WL_DEVICE void csr_sddmm(const item& it, i64 items, i64 k, i64 batch, const I* bounds,
                         const I* target, const I* indices, const T* values, i64 values_step,
                         const T* C, i64 C_ld, i64 C_step, const T* B, i64 B_ld, i64 B_step,
                         T* sampled, i64 S_step, held_t<T> alpha, held_t<T> beta) {
  using S = held_t<T>;
  constexpr int waves = WL_BLOCK / WL_WARP, width = L * V * E, ahead = L < A ? L : A;
  constexpr bool in_strips = has_strips<L, V, WHOLE>;
  // without columns the operands may have no memory
  const i64 strips = in_strips ? (k + width - 1) / width : WHOLE || k > 0;
  const i64 units = WHOLE == ALONE ? items : items * batch;
  const I C_row = WHOLE == ALONE ? I(width) : I(C_ld), B_row = WHOLE == ALONE ? I(width) : I(B_ld);
  const batch_of<L, I> me(it);
  for (i64 u = it.block() * waves + wave_of(it); u < units; u += it.blocks() * waves) {
    const unit_of unit(u, WHOLE == ALONE ? u + 1 : items, 1);
    I p = bounds[unit.i];
    const I end = bounds[unit.i + 1];
    int count = me.count(p, end);
    if (count <= 0)
      continue;
    I column = read_once(indices + me.own(p, count));
    const I of_row = target ? target[unit.i] : I(unit.i);
    const T* const of_C = gathered_row(C + unit.b * C_step, of_row, C_row);
    const T* const of_B = B + unit.b * B_step;
    pack<T, E> mine[V] = {};
    if (strips == 1)
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const int at = (v * L + me.l) * E;
        mine[v] = load_part<WHOLE, T, E>(at < k, of_C, at);
      }
    while (count > 0) {
      const I now = p, of_now = column;
      const int here = count;
      p += I(here);
      count = me.count(p, end);
      if (count > 0) // the columns of the next batch, while the rows of this one arrive
        column = read_once(indices + me.own(p, count));
      S dot{};
#pragma unroll 1
      for (int s = 0; s * me.side < here; s += ahead) {
        dot_of_strips<in_strips, S> parts[ahead];
        const T* of_j[ahead];
#pragma unroll
        for (int a = 0; a < ahead; ++a)
          of_j[a] = gathered_row(of_B, shuffle(of_now, me.lane_with(s + a)), B_row);
        for (i64 strip = 0; strip < strips; ++strip) {
          const i64 first = strip * width + me.l * E;
          if (strips > 1)
#pragma unroll
            for (int v = 0; v < V; ++v)
              mine[v] = load_part<WHOLE, T, E>(first + v * L * E < k, of_C, first + v * L * E);
          pack<T, E> row[ahead][V];
#pragma unroll
          for (int a = 0; a < ahead; ++a)
#pragma unroll
            for (int v = 0; v < V; ++v)
              row[a][v] = load_part<WHOLE, T, E>(first + v * L * E < k, of_j[a], first + v * L * E);
#pragma unroll
          for (int a = 0; a < ahead; ++a)
            parts[a].add(mine, row[a]);
        }
        S dots[ahead];
#pragma unroll
        for (int a = 0; a < ahead; ++a)
          dots[a] = parts[a].value();
        const S total = reduce_scatter<L>(it, dots);
        dot = me.l / ahead == s / ahead ? total : dot;
      }
      if (me.place(me.l) < here) {
        const i64 e = i64(now) + me.place(me.l);
        if (values)
          dot = dot * widen(values[unit.b * values_step + e]);
        store_narrowed(sampled[unit.b * S_step + e], dot, alpha, beta);
      }
    }
  }
}

} // namespace wl
