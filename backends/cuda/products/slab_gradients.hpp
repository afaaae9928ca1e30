// The gradients of attention by entries of 16 rows at a time; see slab_attention.hpp. Weights are
// computed again from what the forward product left (Dao, FlashAttention-2, 2023, algorithm 2, by
// rows and by columns in turn instead of with atomic sums).
#pragma once
#include "slab_attention.hpp"

namespace wl {

// Leaves the facts of rows, the logarithm of the total to base 2 and the mean of the gradients of
// weights, `padded` of either for each block, and the gradient of C if it is asked for.
template <int DIM, int HEIGHT, int WHOLE, class T>
WL_DEVICE void slab_row_gradients(const item& it, i64 m, i64 n, i64 k, i64 p, i64 shares, i64 slabs,
                                  i64 padded, const i32* starts, const u8* entries, const T* C,
                                  i64 C_ld, i64 C_step, const T* B, i64 B_ld, i64 B_step,
                                  const T* D, i64 D_ld, i64 D_step, const T* G, i64 G_ld,
                                  i64 G_step, const T* out, i64 out_ld, i64 out_step,
                                  const float* log_totals, i64 log_totals_step, float* facts,
                                  T* of_C, i64 of_C_ld, i64 of_C_step, float alpha) {
  WL_DYNAMIC_SHARED(bytes);
  const int lane = lane_of(it);
  const own_panels<1> own(it, m, shares);
  const i64 block = own.block, first = own.number[0] * PANEL_ROWS;
  const rows_of<T> its_C{C + block * C_step, C_ld, m}, its_G{G + block * G_step, G_ld, m},
      its_B{B + block * B_step, B_ld, n}, its_D{D + block * D_step, D_ld, n},
      its_out{out + block * out_step, out_ld, m};
  float* const its_facts = facts + block * padded * 2;
  float log_total[2], mean[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const i64 r = first + 8 * h + lane / 4;
    const float part =
        r < m ? part_of_dot<DIM, WHOLE>(lane % 4, its_G.row(r), its_out.row(r), p) : 0.0f;
    mean[h] = sum_of_row(it, part);
    log_total[h] = r < m ? log_totals[block * log_totals_step + r] * LOG2_E : 0.0f;
    if (r < m && lane % 4 == 0)
      *reinterpret_cast<pack<float, 2>*>(its_facts + 2 * r) = {{log_total[h], mean[h]}};
  }
  if (!of_C)
    return;
  const slab_pair<DIM, HEIGHT, WHOLE, 0, T> pair{its_B, its_D, k, p, nullptr, bytes};
  const float scale = score_scale(alpha);
  const panel_entries panels[1] = {
      panel_entries::of(own.number[0], starts, entries, int(slabs), HEIGHT)};
  own_rows<DIM, WHOLE, T> rows_C, rows_G;
  rows_C.load(its_C, first, k, alpha < 0 ? 0x80008000u : 0u, lane);
  rows_G.load(its_G, first, p, 0, lane);
  float sums[1][DIM / 8][4] = {};
  for_batches(it, pair, panels, [&](int, const lane_entries& known, const unsigned char* stage) {
    const places_of_entries places(known, lane);
    float weights[1][2][4], of_scores[1][2][4];
    rows_C.multiply(weights, stage, known, lane);
    rows_G.multiply(of_scores, stage + pair.of_slab, known, lane);
    to_weights<true>(weights, places, scale, [&](int, int, int e) { return log_total[e / 2]; });
    to_score_gradients(of_scores, weights, [&](int, int, int e) { return mean[e / 2]; });
    add_rows<DIM, T>(sums[0], of_scores, shared_offset(stage), known, lane);
  });
  bool finite = true;
#pragma unroll
  for (int h = 0; h < 2; ++h)
    finite = scale_row(sums[0], h, alpha) && finite;
  T* const its_of_C = of_C + block * of_C_step;
  if (ballot(!finite)) {
    for (int r = 0; r < PANEL_ROWS && first + r < m; ++r)
      row_gradient_by_entries<DIM>(it, panels[0], r, its_C.row(first + r), its_G.row(first + r),
                                   its_B, its_D, k, p, alpha * LOG2_E, its_facts[2 * (first + r)],
                                   its_facts[2 * (first + r) + 1], alpha,
                                   its_of_C + (first + r) * of_C_ld);
  } else {
    store_rows<DIM, 1, WHOLE>(sums, its_of_C, of_C_ld, first, m, k, lane);
  }
}

// The gradients of the rows of B and D, either of which may be null, by panels of the transposed
// pattern, whose columns are the m rows of C and G.
template <int DIM, int HEIGHT, int WHOLE, class T>
WL_DEVICE void slab_column_gradients(const item& it, i64 m, i64 n, i64 k, i64 p, i64 shares,
                                     i64 slabs, i64 padded, const i32* starts, const u8* entries,
                                     const T* C, i64 C_ld, i64 C_step, const T* B, i64 B_ld,
                                     i64 B_step, const T* D, i64 D_ld, i64 D_step, const T* G,
                                     i64 G_ld, i64 G_step, const float* facts, T* of_B, i64 of_B_ld,
                                     i64 of_B_step, T* of_D, i64 of_D_ld, i64 of_D_step,
                                     float alpha) {
  WL_DYNAMIC_SHARED(bytes);
  const int lane = lane_of(it);
  const own_panels<1> own(it, n, shares);
  const i64 block = own.block, first = own.number[0] * PANEL_ROWS;
  const rows_of<T> its_C{C + block * C_step, C_ld, m}, its_G{G + block * G_step, G_ld, m},
      its_B{B + block * B_step, B_ld, n}, its_D{D + block * D_step, D_ld, n};
  const float* const its_facts = facts + block * padded * 2;
  const slab_pair<DIM, HEIGHT, WHOLE, 8, T> pair{
      its_C, its_G, k, p, reinterpret_cast<const u8*>(its_facts), bytes};
  const float scale = score_scale(alpha);
  const panel_entries panels[1] = {
      panel_entries::of(own.number[0], starts, entries, int(slabs), HEIGHT)};
  own_rows<DIM, WHOLE, T> rows_B, rows_D;
  rows_B.load(its_B, first, k, alpha < 0 ? 0x80008000u : 0u, lane);
  rows_D.load(its_D, first, p, 0, lane);
  float sums_B[1][DIM / 8][4] = {}, sums_D[1][DIM / 8][4] = {};
  for_batches(it, pair, panels, [&](int, const lane_entries& known, const unsigned char* stage) {
    const places_of_entries places(known, lane);
    const float* const slab_facts = reinterpret_cast<const float*>(stage + 2 * pair.of_slab);
    const auto fact = [&](int j, int e, int which) {
      return slab_facts[2 * column_in_slab(known.entry(j, e % 2)) + which];
    };
    float weights[1][2][4];
    rows_B.multiply(weights, stage, known, lane);
    to_weights<true>(weights, places, scale, [&](int, int j, int e) { return fact(j, e, 0); });
    add_rows<DIM, T>(sums_D[0], weights, shared_offset(stage + pair.of_slab), known, lane);
    float of_scores[1][2][4];
    rows_D.multiply(of_scores, stage + pair.of_slab, known, lane);
    to_score_gradients(of_scores, weights, [&](int, int j, int e) { return fact(j, e, 1); });
    add_rows<DIM, T>(sums_B[0], of_scores, shared_offset(stage), known, lane);
  });
  bool finite = true;
#pragma unroll
  for (int h = 0; h < 2; ++h)
    finite = scale_row(sums_B[0], h, alpha) && scale_row(sums_D[0], h, 1.0f) && finite;
  T* const out_B = of_B ? of_B + block * of_B_step : of_B;
  T* const out_D = of_D ? of_D + block * of_D_step : of_D;
  if (ballot(!finite)) {
    for (int r = 0; r < PANEL_ROWS && first + r < n; ++r) {
      const i64 at = first + r;
      column_gradients_by_entries<DIM>(it, panels[0], r, its_B.row(at), its_D.row(at), its_C, its_G,
                                       its_facts, its_facts + 1, 2, k, p, alpha,
                                       out_B ? out_B + at * of_B_ld : out_B,
                                       out_D ? out_D + at * of_D_ld : out_D);
    }
  } else {
    if (out_B)
      store_rows<DIM, 1, WHOLE>(sums_B, out_B, of_B_ld, first, n, k, lane);
    if (out_D)
      store_rows<DIM, 1, WHOLE>(sums_D, out_D, of_D_ld, first, n, p, lane);
  }
}

} // namespace wl
