// C = alpha A B + beta C where the nonzeros are split into chunks of equal size, independent of
// rows (Huang et al. 2021): the lengths of rows do not affect the time. row_of[e] is the row of
// entry e, and row_of[nnz] is no row.
//
// A chunk usually ends within a row. Sums of rows that span several chunks go to lines of
// `partial`: the sum of the first row of chunk q goes to line line_of[2 q], and the sum of its last
// row to line line_of[2 q + 1] (-1: the chunk contains the whole row). The lines are added up
// afterwards, in their order.
#pragma once
#include "simt/packs.hpp"

namespace wl {

// Stores the sum of a row that ends with entry e of a chunk.
template <int L, int V, int E, class T, class I>
struct chunk_end {
  const I *row_of, *line_of; // of this chunk
  i64 k, C_ld, first;
  T* C;
  held_t<T>* lines;
  held_t<T> alpha, beta;

  // `is_first` and `is_last`: whether the row is the first or the last one of the chunk.
  WL_DEVICE void operator()(i64 e, bool is_first, bool is_last, const held_t<T>* sums) const {
    const I of_first = is_first ? line_of[0] : I(-1), of_last = is_last ? line_of[1] : I(-1);
    const I line = of_first >= 0 ? of_first : of_last;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const i64 c = first + v * L * E;
      if (c >= k)
        continue;
      if (line < 0)
        store_pack<T, E>(C + row_of[e] * C_ld + c, sums + v * E, alpha, beta);
      else
#pragma unroll
        for (int i = 0; i < E; ++i)
          lines[line * k + c + i] = sums[v * E + i];
    }
  }
};

// SEGMENTS = 0: each group of L lanes traverses a chunk, one entry after the other, and stores a
// sum where a row ends. SEGMENTS = 1: each wave traverses a chunk; its groups multiply adjacent
// entries in parallel, and a segmented scan adds up each row. While no row ends, groups keep
// separate sums, and no scan is needed.
template <int L, int V, int E, int A, int SEGMENTS, int WHOLE, class T, class I>
WL_DEVICE void csr_spmm_nonzero_split(const item& it, i64 nnz, i64 chunk, i64 k, i64 batch,
                                      const I* row_of, const I* line_of, const I* indices,
                                      const T* values, i64 values_step, const T* B, i64 B_ld,
                                      i64 B_step, T* C, i64 C_ld, i64 C_step, held_t<T> alpha,
                                      held_t<T> beta, i64 lines, u8* partial) {
  using S = held_t<T>;
  constexpr int own = SEGMENTS ? WL_WARP : L, side = own / L, chunks_each = WL_WARP / own,
                width = L * V * E;
  [[maybe_unused]] constexpr int turns = unrolled(L / A);
  const i64 tiles = (k + width - 1) / width, chunks = (nnz + chunk - 1) / chunk,
            units = (chunks + chunks_each - 1) / chunks_each;
  const i64 u = it.block() * (WL_BLOCK / WL_WARP) + wave_of(it);
  if (u >= units * tiles * batch)
    return; // the whole wave returns
  const unit_of unit(u, units, tiles);
  const int lane = lane_of(it), l = lane % L, group = lane % own / L, mine = lane % own;
  const i64 q = unit.i * chunks_each + lane / own, first = unit.tile * width + l * E;
  const i64 begin = q < chunks ? q * chunk : nnz, end = begin + chunk < nnz ? begin + chunk : nnz;
  const T* const of_B = B + unit.b * B_step + first;
  const T* const of_values = values + unit.b * values_step;
  const chunk_end<L, V, E, T, I> finish{row_of,
                                        line_of + 2 * q,
                                        k,
                                        C_ld,
                                        first,
                                        C + unit.b * C_step,
                                        reinterpret_cast<S*>(partial) + unit.b * lines * k,
                                        alpha,
                                        beta};
  S sums[V * E] = {};
  bool is_first = true;
  // every group of the wave makes the same number of iterations
  for (i64 p = 0; p < chunk; p += own) {
    const i64 e = begin + p + mine;
    const bool there = e < end;
    const i64 from = there ? e : end > 0 ? end - 1 : 0;
    const I column = indices[from];
    const S factors = there ? widen(of_values[from]) : S{};
    const bool ends = there && (e + 1 == end || row_of[e] != row_of[e + 1]);
    const u64 votes = ballot(ends);
    // Bit i: a row ends with entry i of the group's entries.
    const u64 marks = own == WL_WARP ? votes : votes >> (lane - mine) & ((u64(1) << own % 64) - 1);
    const int left = end - begin - p < own ? int(end - begin - p) : own;
#pragma unroll turns
    for (int s = 0; s < L; s += A) {
      words_in<T, E> row[A][V];
#pragma unroll
      for (int a = 0; a < A; ++a) {
        const I c =
            SEGMENTS ? shuffle(column, (s + a) * side + group) : of_group<L>(it, column, s + a);
        const T* const of_row = of_B + i64(c) * (WHOLE == 2 ? i64(width) : B_ld);
#pragma unroll
        for (int v = 0; v < V; ++v)
          row[a][v] =
              load_words<T, E>(of_row + (WHOLE || first + v * L * E < k ? v * L * E : -first));
      }
      if ((s + A) * side > left)
#pragma unroll
        for (int a = 0; a < A; ++a)
          if ((s + a) * side + group >= left)
#pragma unroll
            for (int v = 0; v < V; ++v)
              row[a][v] = words_in<T, E>{};
#pragma unroll
      for (int a = 0; a < A; ++a) {
        const int at = (s + a) * side + group; // this group's entry
        const S factor = SEGMENTS ? shuffle(factors, at) : of_group<L>(it, factors, s + a);
        if constexpr (!SEGMENTS || side == 1) {
#pragma unroll
          for (int v = 0; v < V; ++v)
            add_words<T, E>(sums + v * E, factor, row[a][v]);
          if (marks >> at & 1) {
            finish(begin + p + at, is_first, begin + p + at + 1 == end, sums);
            is_first = false;
#pragma unroll
            for (int i = 0; i < V * E; ++i)
              sums[i] = S{};
          }
        } else {
          constexpr u64 ones = ~u64(0) >> (64 - side);
          // the entries of this step at which rows end
          const u64 step = marks >> (s + a) * side & ones;
          if (step == 0) {
#pragma unroll
            for (int v = 0; v < V; ++v)
              add_words<T, E>(sums + v * E, factor, row[a][v]);
            continue; // the whole wave skips the scan
          }
          const u64 before = step & ((u64(1) << group) - 1);
          // no row ends in this group or in later ones: the row continues
          const bool after = step >> group == 0;
          S now[V * E] = {};
#pragma unroll
          for (int v = 0; v < V; ++v)
            add_words<T, E>(now + v * E, factor, row[a][v]);
#pragma unroll
          for (int i = 0; i < V * E; ++i) {
            // The first row to end gets the partial sums of all groups; group 0 stores it.
            S kept = sums[i];
            for (int d = L; d < WL_WARP; d *= 2) {
              const S other = shuffle_xor(it, kept, d);
              kept += other;
            }
            sums[i] = after ? now[i] : S{};
            now[i] += group == 0 ? kept : S{};
            for (int d = 1; d < side; d *= 2) {
              const S other = shuffle_up(it, now[i], d * L);
              const bool same = group >= d && before >> (group - d) == 0;
              now[i] += same ? other : S{};
            }
          }
          if (step >> group & 1)
            finish(begin + p + at, is_first && before == 0, begin + p + at + 1 == end, now);
          is_first = false;
        }
      }
    }
  }
}

} // namespace wl
