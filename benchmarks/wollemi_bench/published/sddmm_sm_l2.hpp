// S = alpha <C_i, B_j> A_ij + beta S on the pattern of A, by tiles that keep their active rows on
// the chip: SM-L2 of Nisa, Sukumaran-Rajam, Kurt, Hong and Sadayappan (HiPC 2018).
//
// Columns are cut into panels that fit half of the second-level cache, and entries are taken panel
// by panel. Each block takes a tile: up to ROWS rows with entries in the panel, and up to
// SM_L2_ENTRIES of their entries. Slices of these rows are copied to shared memory, while rows of B
// come from the cache; the sums of a tile stay in shared memory from slice to slice.
#pragma once
#include "simt/packs.hpp"

namespace wl {

constexpr int SM_L2_ENTRIES = 1024;
constexpr int SM_L2_KEPT = 32768; // bytes of all slices of a tile

// A slice is SLICE bytes of a row, and a tile has as many rows as fit. L lanes share an entry. Tile
// t has the entries from first_entry[t] and the rows from first_row[t] of `rows`; entry e of a tile
// is number `order[e]` of the pattern, in row `local[e]` of the tile.
template <int L, int E, int SLICE, class T, class I>
WL_DEVICE void sm_l2_sddmm(const item& it, i64 tiles, i64 k, i64 batch, const I* first_entry,
                           const I* first_row, const I* rows, const i32* local, const I* order,
                           const I* indices, const T* values, i64 values_step, const T* C, i64 C_ld,
                           i64 C_step, const T* B, i64 B_ld, i64 B_step, T* sampled, i64 S_step,
                           held_t<T> alpha, held_t<T> beta) {
  using S = held_t<T>;
  using P = pack<T, E>;
  constexpr int ROWS = SM_L2_KEPT / SLICE, slice = SLICE / int(sizeof(T)), each = slice / E,
                groups = WL_BLOCK / L;
  static_assert(each % L == 0, "lanes have equal parts of a slice");
  WL_SHARED(P, kept, ROWS * each);
  WL_SHARED(S, sums, SM_L2_ENTRIES);
  const int group = it.thread() / L, l = it.thread() % L;
  for (i64 u = it.block(); u < tiles * batch; u += it.blocks()) {
    const i64 b = u / tiles, t = u - b * tiles;
    const i64 begin = first_entry[t], top = first_row[t];
    const int count = int(first_entry[t + 1] - begin), height = int(first_row[t + 1] - top);
    for (int i = it.thread(); i < count; i += WL_BLOCK)
      sums[i] = S{};
    for (i64 c0 = 0; c0 < k; c0 += slice) {
      it.barrier(); // the slice before was used
      for (int i = it.thread(); i < height * each; i += WL_BLOCK) {
        const int r = i / each, c = i % each * E;
        const T* const of_C = row_at(C + b * C_step, rows[top + r], I(C_ld));
        kept[i] = load_part<0, T, E>(c0 + c < k, of_C, c0 + c);
      }
      it.barrier();
      for (int at = 0; at < count; at += groups) {
        const int own = at + group < count ? at + group : count - 1;
        const T* const of_B = row_at(B + b * B_step, indices[order[begin + own]], I(B_ld));
        const P* const of_C = kept + local[begin + own] * each;
        S dot{};
#pragma unroll
        for (int v = 0; v < each / L; ++v) {
          const int c = v * L + l;
          dot = dot_pack<T, E>(dot, of_C[c], load_part<0, T, E>(c0 + c * E < k, of_B, c0 + c * E));
        }
        dot = sum_of_lanes<L>(it, dot);
        if (l == 0 && at + group < count)
          sums[own] += dot;
      }
    }
    it.barrier();
    for (int i = it.thread(); i < count; i += WL_BLOCK) {
      const i64 e = order[begin + i];
      S dot = sums[i];
      if (values)
        dot = dot * widen(values[b * values_step + e]);
      store_narrowed(sampled[b * S_step + e], dot, alpha, beta);
    }
    it.barrier(); // the next tile begins with sums of its own
  }
}

} // namespace wl
