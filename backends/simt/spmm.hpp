// C = alpha A B + beta C with B dense by rows. A row of A (or a piece of a long row) is processed
// by a wave, by a group of lanes of a wave, or by all waves of a block together.
#pragma once
#include "unified/long_sums.hpp"
#include "simt/packs.hpp"

namespace wl {

// L lanes hold V vectors each of a row of B. WAVES = 1: the WL_WARP / L groups of lanes multiply
// different entries of one row in parallel, and add up their sums at the end. WAVES = 0: each group
// has its own row. WAVES > 1: the groups of a whole block share a row. Each wave in turn takes one
// entry per lane, and the first wave adds up all partial sums in their order.
//
// Each lane of a row loads one entry of a batch. The next batch is loaded before the current one is
// multiplied, and shuffles distribute the entries: loading entries at their use is slower. A
// entries of each group are loaded before the first is added.
//
// WHOLE = 1: k is a multiple of the columns of a group. WHOLE = 2: k equals them, and the rows of B
// are contiguous: the distance of two rows is a constant, and an address takes one instruction
// instead of three.
//
// Item i of the list has the entries bounds[i] .. bounds[i + 1] of row target[i], or of row i if
// `target` is null. A target t < 0 marks a piece of a cut row; its sums go to line -1 - t of
// `partial`.
template <int L, int V, int E, int A, int WAVES, int WHOLE, class T, class I>
WL_DEVICE void csr_spmm(const item& it, i64 items, i64 k, i64 batch, const I* bounds,
                        const I* target, const I* indices, const T* values, i64 values_step,
                        const T* B, i64 B_ld, i64 B_step, T* C, i64 C_ld, i64 C_step,
                        held_t<T> alpha, held_t<T> beta, i64 lines, u8* partial) {
  using S = held_t<T>;
  static_assert(WAVES < 2 || WL_BLOCK == WAVES * WL_WARP, "the waves of a block");
  constexpr int own = WAVES ? WL_WARP : L, side = own / L, rows = WL_WARP / own, width = L * V * E;
  constexpr int stride = WAVES > 1 ? WL_BLOCK : own;
  [[maybe_unused]] constexpr int turns = unrolled(L / A);
  const i64 tiles = (k + width - 1) / width, shares = (items + rows - 1) / rows;
  const i64 u = WAVES > 1 ? it.block() : it.block() * (WL_BLOCK / WL_WARP) + wave_of(it);
  if (u >= shares * tiles * batch)
    return; // the whole wave or block returns
  const unit_of unit(u, shares, tiles);
  // Of the entries that are loaded together, lane l of group g loads number l side + g: the entries
  // of a group are then in the lanes of the group.
  const int lane = lane_of(it), group = lane % own / L, mine = lane % L * side + group;
  const int first = int(unit.tile) * width + lane % L * E;
  const i64 i = unit.i * rows + lane / own;
  const bool there = rows == 1 || i < items;
  const I begin = there ? bounds[i] : I(0), size = there ? bounds[i + 1] - begin : I(0);
  I longest = size;
#pragma unroll
  for (int d = own; d < WL_WARP; d *= 2) {
    const I other = shuffle_xor(it, longest, d);
    longest = other > longest ? other : longest;
  }
  const T* const of_B = B + unit.b * B_step + first;
  // Absent entries repeat the last entry; entries of an empty row repeat the first entry of the
  // matrix. So no load depends on a condition.
  const I* const of_indices = indices + (size > 0 ? begin : 0);
  const T* const of_values = values + unit.b * values_step + (size > 0 ? begin : 0);
  const I last = size > 0 ? size - 1 : 0;
  S sums[V * E] = {};
  I column{};
  T value{};
  const I start = WAVES > 1 ? I(wave_of(it) * WL_WARP) : I(0);
  if (longest > 0) {
    const I e = start + mine < last ? start + mine : last;
    column = read_once(of_indices + e);
    value = read_once(of_values + e);
  }
  for (I p = start; p < longest; p += stride) {
    I next_column{};
    T next_value{};
    if (p + stride < longest) {
      const I e = p + stride + mine < last ? p + stride + mine : last;
      next_column = read_once(of_indices + e);
      next_value = read_once(of_values + e);
    }
    const S factors = p + mine < size ? widen(value) : S{};
#pragma unroll turns
    for (int s = 0; s < L; s += A) {
      if (p + s * side >= longest)
        break;
      words_in<T, E> row[A][V];
#pragma unroll
      for (int a = 0; a < A; ++a) {
        const I c = of_group<L>(it, column, s + a);
        const T* const of_row = of_B + i64(c) * (WHOLE == 2 ? i64(width) : B_ld);
#pragma unroll
        for (int v = 0; v < V; ++v) // columns beyond k are added up but not stored
          row[a][v] =
              load_words<T, E>(of_row + (WHOLE || first + v * L * E < k ? v * L * E : -first));
      }
      if (p + (s + A) * side > size) // repeated entries are not added: B may hold infinities
#pragma unroll
        for (int a = 0; a < A; ++a)
          if (p + (s + a) * side + group >= size)
#pragma unroll
            for (int v = 0; v < V; ++v)
              row[a][v] = words_in<T, E>{};
#pragma unroll
      for (int a = 0; a < A; ++a) {
        const S factor = of_group<L>(it, factors, s + a);
#pragma unroll
        for (int v = 0; v < V; ++v)
          add_words<T, E>(sums + v * E, factor, row[a][v]);
      }
    }
    column = next_column;
    value = next_value;
  }
#pragma unroll
  for (int d = L; d < own; d *= 2)
#pragma unroll
    for (int e = 0; e < V * E; ++e) {
      const S other = shuffle_xor(it, sums[e], d);
      sums[e] += other;
    }
  if constexpr (WAVES > 1) {
    constexpr int each = V * E; // sums of a lane
    WL_SHARED(S, others, (WAVES - 1) * each * L);
    const int wave = wave_of(it), l = lane % L;
    if (wave > 0 && group == 0)
#pragma unroll
      for (int e = 0; e < each; ++e)
        others[((wave - 1) * each + e) * L + l] = sums[e];
    it.barrier();
    if (wave > 0)
      return;
#pragma unroll
    for (int w = 0; w < WAVES - 1; ++w)
#pragma unroll
      for (int e = 0; e < each; ++e)
        sums[e] += others[(w * each + e) * L + l];
  }
  if (!there || group != 0)
    return;
  const I row = target ? target[i] : I(i);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const int c = first + v * L * E;
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
    if constexpr (sums_in_pieces<S>) { // a piece has few entries, a row many pieces
      long_sum<S> total{};
#pragma unroll 8
      for (I line = first[i]; line < first[i + 1]; ++line)
        total.add(of_block[line * k]);
      sum = total.value();
    } else {
#pragma unroll 8
      for (I line = first[i]; line < first[i + 1]; ++line)
        sum += of_block[line * k];
    }
    store_narrowed(C[b * C_step + rows[i] * C_ld + c], sum, alpha, beta);
  }
}

} // namespace wl
