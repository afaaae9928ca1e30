// softmax(alpha C B^T) D by entries of 16 rows at a time on tensor cores, with slabs of B and D in
// shared memory; see slab_entries.hpp.
#pragma once
#include "slab_entries.hpp"

namespace wl {

// The panels of a warp: the block's are neighbours. Blocks of a head follow one another, so that its
// slabs are in the second-level cache while they are read.
template <int M>
struct own_panels {
  i64 block, number[M];

  WL_DEVICE own_panels(const item& it, i64 rows, i64 shares) : block(it.block() / shares) {
    const i64 count = (rows + PANEL_ROWS - 1) / PANEL_ROWS;
    const i64 first = it.block() % shares * (M * (WL_BLOCK / 32)) + wave_of(it) * M;
#pragma unroll
    for (int i = 0; i < M; ++i)
      number[i] = first + i < count ? first + i : count;
  }
};

// A warp has M panels of 16 rows. The logarithms of totals are left where `log_totals` is not null.
template <int DIM, int HEIGHT, int M, int WHOLE, class T>
WL_DEVICE void slab_attention(const item& it, i64 m, i64 n, i64 k, i64 p, i64 shares, i64 slabs,
                              const i32* starts, const u8* entries, const T* C, i64 C_ld,
                              i64 C_step, const T* B, i64 B_ld, i64 B_step, const T* D, i64 D_ld,
                              i64 D_step, T* out, i64 out_ld, i64 out_step, float* log_totals,
                              i64 log_totals_step, float alpha) {
  WL_DYNAMIC_SHARED(bytes);
  const int lane = lane_of(it);
  const own_panels<M> own(it, m, shares);
  const i64 block = own.block;
  const rows_of<T> of_C{C + block * C_step, C_ld, m}, of_B{B + block * B_step, B_ld, n},
      of_D{D + block * D_step, D_ld, n};
  const slab_pair<DIM, HEIGHT, WHOLE, 0, T> pair{of_B, of_D, k, p, nullptr, bytes};
  const float scale = score_scale(alpha);
  panel_entries panels[M];
  own_rows<DIM, WHOLE, T> rows[M];
  running_softmax<1> softmax[M];
  float sums[M][1][DIM / 8][4] = {};
#pragma unroll
  for (int i = 0; i < M; ++i) {
    panels[i] = panel_entries::of(own.number[i], starts, entries, int(slabs), HEIGHT);
    rows[i].load(of_C, own.number[i] * PANEL_ROWS, k, alpha < 0 ? 0x80008000u : 0u, lane);
  }
  for_batches(it, pair, panels,
              [&](int i, const lane_entries& known, const unsigned char* stage) {
                const places_of_entries places(known, lane);
                float scores[1][2][4];
                rows[i].multiply(scores, stage, known, lane);
                softmax[i].template take<true>(it, scores, places, scale,
                                               [&](const float (&factor)[1][2]) {
#pragma unroll
                                                 for (int j = 0; j < DIM / 8; ++j)
#pragma unroll
                                                   for (int e = 0; e < 4; ++e)
                                                     sums[i][0][j][e] *= factor[0][e / 2];
                                               });
                add_rows<DIM, T>(sums[i][0], scores, shared_offset(stage + pair.of_slab), known, lane);
              });
  T* const of_out = out + block * out_step;
#pragma unroll
  for (int i = 0; i < M; ++i) {
    const i64 first = own.number[i] * PANEL_ROWS;
    bool finite = true;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const i64 r = first + 8 * h + lane / 4;
      const float total = sum_of_row(it, softmax[i].total[0][h]);
      // A total is 0 of no entries, and of minus infinities alone.
      const bool has_entries = total != 0 || (r < m && panels[i].any(8 * h + lane / 4));
      finite = scale_row(sums[i][0], h, share_of(total, has_entries)) && finite;
      if (log_totals && lane % 4 == 0 && r < m)
        log_totals[block * log_totals_step + r] = (softmax[i].from[0][h] + log_2(total)) * LN_2;
    }
    if (ballot(!finite)) {
      for (int r = 0; r < PANEL_ROWS && first + r < m; ++r)
        attend_by_entries<DIM>(it, panels[i], r, of_C.row(first + r), of_B, of_D, k, p,
                               alpha * LOG2_E, of_out + (first + r) * out_ld);
    } else {
      store_rows<DIM, 1, WHOLE>(sums[i], of_out, out_ld, first, m, p, lane);
    }
  }
}

} // namespace wl
