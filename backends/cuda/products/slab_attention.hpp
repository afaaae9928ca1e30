// softmax(alpha C B^T) D on tensor cores, 16 entries of 8 rows at a time, with slabs of B and D in
// shared memory; see slab_entries.hpp.
#pragma once
#include "cuda/products/slab_entries.hpp"

namespace wl {

// Sums of powers of 2 of scores, as in running_softmax, for row lane / 4 of a panel. Four lanes
// share a row.
struct softmax_of_entries {
  float from = lowest(), total = 0;

  // Turns scores into powers, and positions without an entry into 0. Calls `rescale` with the
  // factors of the row's earlier sums, unless all factors of the panel are 1.
  template <class Rescale>
  WL_DEVICE void take(const item& it, int lane, float (&scores)[2][2], const lane_entries& known,
                      float scale, const Rescale& rescale) {
    float largest = lowest();
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        scores[j][e] = known.has(j, e, lane) ? scores[j][e] : lowest();
        largest = fmaxf(largest, scores[j][e]);
      }
    largest *= scale;
    if (ballot(largest > from + SLACK)) { // rarely true after the first scores
      largest = fmaxf(largest, shuffle_xor(it, largest, 1));
      largest = fmaxf(largest, shuffle_xor(it, largest, 2));
      const float now = largest > from + SLACK ? largest : from;
      const float factor = now == from ? 1.0f : power_of_2(from - now);
      from = now;
      total *= factor;
      rescale(factor);
    }
    // minus infinity minus minus infinity would be NaN
    const float minus = from == lowest() ? 0.0f : -from;
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        scores[j][e] = power_of_2(fmaf(scores[j][e], scale, minus));
        total += scores[j][e];
      }
  }
};

// The state of a warp for two panels: their rows of C, and sums of rows of D. The slab of D is
// `other` bytes behind the slab of B.
template <int DIM, int WHOLE, class T>
struct attending_panels {
  static constexpr bool told = false;
  const item& it;
  float scale;
  int other;
  own_rows<DIM, WHOLE, T> rows;
  softmax_of_entries softmax[2];
  float sums[2][DIM / 16][4];

  WL_DEVICE void take(int i, int lane, const lane_entries& known, const unsigned char* stage) {
    float scores[2][2];
    multiply(scores, rows, i, stage, known, lane);
    softmax[i].take(it, lane, scores, known, scale, [&](float of_row) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float factor = of_sums(of_row, e, lane);
#pragma unroll
        for (int j = 0; j < DIM / 16; ++j) {
          sums[i][j][e] *= factor;
          sums[i][j][e + 2] *= factor;
        }
      }
    });
    add_rows<DIM, T>(sums[i], scores, shared_offset(stage + other), known, lane);
  }
};

// A warp processes two panels of 8 rows. The logarithms of the totals are stored if `log_totals` is
// not null.
template <int DIM, int HEIGHT, int WHOLE, class T>
WL_DEVICE void slab_attention(const item& it, i64 m, i64 n, i64 k, i64 p, i64 shares, i64 slabs,
                              const i32* starts, const u8* entries, const T* C, i64 C_ld,
                              i64 C_step, const T* B, i64 B_ld, i64 B_step, const T* D, i64 D_ld,
                              i64 D_step, T* out, i64 out_ld, i64 out_step, float* log_totals,
                              i64 log_totals_step, float alpha) {
  WL_DYNAMIC_SHARED(bytes);
  const int lane = lane_of(it), row = lane / 4;
  const own_pair<DIM, HEIGHT> own(it, m, shares, slabs, starts, entries);
  const i64 block = own.block;
  const rows_of<T> of_C{C + block * C_step, C_ld, m}, of_B{B + block * B_step, B_ld, n},
      of_D{D + block * D_step, D_ld, n};
  const slab_pair<DIM, HEIGHT, WHOLE, 0, T> pair{of_B, of_D, k, p, nullptr, own.slabs, bytes};
  attending_panels<DIM, WHOLE, T> panels{it, score_scale(alpha), pair.of_slab, {}, {}, {}};
#pragma unroll
  for (int i = 0; i < 2; ++i)
    panels.rows.load(i, of_C, own.first_row + PANEL_ROWS * i, k, alpha < 0 ? 0x80008000u : 0u,
                     lane);
  own.for_batches(it, pair, panels);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const i64 first = own.first_row + PANEL_ROWS * i;
    T* const of_out = out + block * out_step + first * out_ld;
    bool finite = true;
    const float total = sum_of_row(it, panels.softmax[i].total);
    const float share = share_of_total(total);
#pragma unroll
    for (int e = 0; e < 2; ++e)
      finite = scale_sums(panels.sums[i], e, of_sums(share, e, lane)) && finite;
    if (log_totals && lane % 4 == 0 && first + row < m)
      log_totals[block * log_totals_step + first + row] =
          log_of_powers(panels.softmax[i].from, total) * LN_2;
    if (ballot(!finite)) {
      for (int r = 0; r < PANEL_ROWS && first + r < m; ++r)
        attend_by_entries<DIM>(it, own.entries(), PANEL_ROWS * i + r, of_C.row(first + r), of_B,
                               of_D, k, p, alpha * LOG2_E, of_out + r * out_ld);
    } else {
      store_sums<DIM, WHOLE>(panels.sums[i], of_out, out_ld, m - first, p, lane);
    }
  }
}

} // namespace wl
