// softmax(alpha C B^T) D by 16 entries of 8 rows at a time on tensor cores, with slabs of B and D in
// shared memory; see slab_entries.hpp.
#pragma once
#include "slab_entries.hpp"

namespace wl {

// Sums of powers of 2 of scores as running_softmax has them, of the two rows of a panel that a lane
// has scores of. Eight lanes share a row.
struct softmax_of_entries {
  float from[2] = {lowest(), lowest()}, total[2] = {};

  // Makes scores powers, and what is not an entry 0. Calls `rescale` with what earlier sums are
  // multiplied by where that is not 1 for all rows of the warp.
  template <int N, class Rescale>
  WL_DEVICE void take(const item& it, float (&scores)[N][4], const lane_entries (&known)[N],
                      float scale, const Rescale& rescale) {
    const int lane = lane_of(it);
    float most[2];
    bool grows = false;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float largest = lowest();
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float& score = scores[n][2 * h + e];
          score = known[n].has(h, e, lane) ? score : lowest();
          largest = fmaxf(largest, score);
        }
      most[e] = largest * scale;
      grows = grows || most[e] > from[e] + SLACK;
    }
    if (ballot(grows)) { // rarely, once the first scores are known: only then do lanes exchange
      float factor[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float largest = largest_of_entries(it, most[e]);
        const float now = largest > from[e] + SLACK ? largest : from[e];
        factor[e] = now == from[e] ? 1.0f : power_of_2(from[e] - now);
        from[e] = now;
        total[e] *= factor[e];
      }
      rescale(factor);
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      // Relative to minus infinity, others of it would be NaN.
      const float minus = from[e] == lowest() ? 0.0f : -from[e];
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float& score = scores[n][2 * h + e];
          score = power_of_2(fmaf(score, scale, minus));
          total[e] += score;
        }
    }
  }
};

// What a warp has of M panels: their rows of C, and sums of rows of D, whose slab is `other` bytes
// behind that of B.
template <int DIM, int M, int WHOLE, class T>
struct attending_panels {
  const item& it;
  float scale;
  int other;
  own_rows<DIM, WHOLE, T> rows[M];
  softmax_of_entries softmax[M];
  float sums[M][DIM / 16][4];

  template <int N>
  WL_DEVICE void take(int i, const lane_entries (&known)[N], const unsigned char* stage) {
    const int lane = lane_of(it);
    float scores[N][4];
    rows[i].multiply(scores, stage, known, lane);
    softmax[i].take(it, scores, known, scale, [&](const float (&factor)[2]) {
#pragma unroll
      for (int j = 0; j < DIM / 16; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          sums[i][j][e] *= factor[e % 2];
    });
#pragma unroll
    for (int b = 0; b < N; ++b)
      add_rows<DIM, T>(sums[i], scores[b], shared_offset(stage + other), known[b], lane);
  }
};

// A warp has M panels of 8 rows, and N batches at once. The logarithms of totals are left where
// `log_totals` is not null.
template <int DIM, int HEIGHT, int M, int N, int WHOLE, class T>
WL_DEVICE void slab_attention(const item& it, i64 m, i64 n, i64 k, i64 p, i64 shares, i64 slabs,
                              const i32* starts, const u8* entries, const T* C, i64 C_ld,
                              i64 C_step, const T* B, i64 B_ld, i64 B_step, const T* D, i64 D_ld,
                              i64 D_step, T* out, i64 out_ld, i64 out_step, float* log_totals,
                              i64 log_totals_step, float alpha) {
  WL_DYNAMIC_SHARED(bytes);
  const int lane = lane_of(it);
  const own_panels<DIM, HEIGHT, M> own(it, m, shares, slabs, starts, entries);
  const i64 block = own.block;
  const rows_of<T> of_C{C + block * C_step, C_ld, m}, of_B{B + block * B_step, B_ld, n},
      of_D{D + block * D_step, D_ld, n};
  const slab_pair<DIM, HEIGHT, WHOLE, 0, T> pair{of_B, of_D, k, p, nullptr, bytes};
  attending_panels<DIM, M, WHOLE, T> panels{it, score_scale(alpha), pair.of_slab, {}, {}, {}};
#pragma unroll
  for (int i = 0; i < M; ++i)
    panels.rows[i].load(of_C, own.first_row[i], k, alpha < 0 ? 0x80008000u : 0u, lane);
  own.template for_batches<N>(it, pair, panels);
#pragma unroll
  for (int i = 0; i < M; ++i) {
    const i64 first = own.first_row[i];
    T* const of_out = out + block * out_step + first * out_ld;
    bool finite = true;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int row = lane % 4 * 2 + e;
      const float total = sum_of_entries(it, panels.softmax[i].total[e]);
      // A total is 0 of no entries, and of minus infinities alone.
      const bool has_entries = total != 0 || own.entries[i].any(row);
      finite = scale_sums(panels.sums[i], e, share_of(total, has_entries)) && finite;
      if (log_totals && lane < 4 && first + row < m)
        log_totals[block * log_totals_step + first + row] =
            (panels.softmax[i].from[e] + log_2(total)) * LN_2;
    }
    if (ballot(!finite)) {
      for (int r = 0; r < PANEL_ROWS && first + r < m; ++r)
        attend_by_entries<DIM>(it, own.entries[i], r, of_C.row(first + r), of_B, of_D, k, p,
                               alpha * LOG2_E, of_out + r * out_ld);
    } else {
      store_sums<DIM, WHOLE>(panels.sums[i], of_out, out_ld, m - first, p, lane);
    }
  }
}

} // namespace wl
