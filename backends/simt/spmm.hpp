// C = alpha A B + beta C, B dense by rows: a wave has a row of A (or a piece of a long one).
#pragma once
#include "packs.hpp"

namespace wl {

// L lanes have V vectors each of a row of B, so that WL_WARP / L entries are multiplied side by
// side. Entries are loaded a wave at a time and handed out by shuffles: loading them where they are
// used took 21 to 36 % more time. WHOLE says that k is a multiple of what the lanes have.
//
// Item i of the list has the entries bounds[i] .. bounds[i + 1] of row target[i], i if there are no
// targets. A target t < 0 is a piece of a cut row, whose sums go to line -1 - t of `partial`.
template <int L, int V, int E, int WHOLE, class T, class I>
WL_DEVICE void csr_spmm(const item& it, i64 items, i64 k, i64 batch, const I* bounds,
                        const I* target, const I* indices, const T* values, i64 values_step,
                        const T* B, i64 B_ld, i64 B_step, T* C, i64 C_ld, i64 C_step,
                        held_t<T> alpha, held_t<T> beta, i64 lines, u8* partial) {
  using S = held_t<T>;
  constexpr int side = WL_WARP / L, waves = WL_BLOCK / WL_WARP, width = L * V * E;
  // Eight loads in flight: four lost 13 to 20 %, sixteen 20 %.
  constexpr int ahead = L < 8 / V ? L : 8 / V;
  const int lane = lane_of(it), group = lane / L;
  const i64 tiles = (k + width - 1) / width, units = items * tiles * batch;
  for (i64 u = it.block() * waves + wave_of(it); u < units; u += it.blocks() * waves) {
    const unit_of unit(u, items, tiles);
    const i64 first = unit.tile * width + lane % L * E, end = bounds[unit.i + 1];
    const T* const of_B = B + unit.b * B_step;
    const T* const of_values = values + unit.b * values_step;
    S sums[V * E] = {};
    for (i64 begin = bounds[unit.i]; begin < end; begin += WL_WARP) {
      const int count = end - begin < WL_WARP ? int(end - begin) : WL_WARP;
      // Lanes that are left over repeat the last entry: no load depends on a condition.
      const i64 e = begin + (lane < count ? lane : count - 1);
      const I column = read_once(indices + e);
      const S value = widen(read_once(of_values + e));
      for (int s = 0; s < count; s += side * ahead) {
        S factor[ahead];
        pack<T, E> row[ahead][V];
#pragma unroll
        for (int a = 0; a < ahead; ++a) {
          const int from = s + a * side + group;
          const I c = shuffle(column, from);
          factor[a] = shuffle(value, from);
#pragma unroll
          for (int v = 0; v < V; ++v) {
            const i64 at = first + v * L * E; // columns beyond k are added up, and not stored
            row[a][v] = load_pack<T, E>(row_at(of_B, c, I(B_ld)) + (WHOLE || at < k ? at : 0));
          }
        }
        if (s + side * ahead > count)
#pragma unroll
          for (int a = 0; a < ahead; ++a)
            if (s + a * side + group >= count)
#pragma unroll
              for (int v = 0; v < V; ++v)
                row[a][v] = pack<T, E>{};
#pragma unroll
        for (int a = 0; a < ahead; ++a)
#pragma unroll
          for (int v = 0; v < V; ++v)
            add_pack<T, E>(sums + v * E, factor[a], row[a][v]);
      }
    }
#pragma unroll
    for (int d = L; d < WL_WARP; d *= 2)
#pragma unroll
      for (int e = 0; e < V * E; ++e) {
        const S other = shuffle_xor(it, sums[e], d);
        sums[e] += other;
      }
    const I row = target ? target[unit.i] : I(unit.i);
    if (group == 0)
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const i64 c = first + v * L * E;
        if (c >= k)
          continue;
        if (row < 0) {
          S* const line = reinterpret_cast<S*>(partial) + (unit.b * lines - 1 - row) * k;
          for (int e = 0; e < E; ++e)
            line[c + e] = sums[v * E + e];
        } else {
          store_pack<T, E>(C + unit.b * C_step + row * C_ld + c, sums + v * E, alpha, beta);
        }
      }
  }
}

// Adds up the pieces of cut rows in their order: row rows[i] has the lines first[i] .. first[i +
// 1].
template <class T, class I>
WL_DEVICE void spmm_join(const item& it, i64 cuts, i64 k, i64 batch, const I* rows, const I* first,
                         i64 lines, const u8* partial, T* C, i64 C_ld, i64 C_step, held_t<T> alpha,
                         held_t<T> beta) {
  using S = held_t<T>;
  const i64 step = it.blocks() * WL_BLOCK, work = cuts * k * batch;
  for (i64 w = it.block() * WL_BLOCK + it.thread(); w < work; w += step) {
    const i64 c = w % k, i = w / k % cuts, b = w / k / cuts;
    const S* const of_block = reinterpret_cast<const S*>(partial) + b * lines * k + c;
    S sum{};
#pragma unroll 8
    for (I line = first[i]; line < first[i + 1]; ++line)
      sum += of_block[line * k];
    store_narrowed(C[b * C_step + rows[i] * C_ld + c], sum, alpha, beta);
  }
}

} // namespace wl
