// The gradients of attention by 16 entries of 8 rows at a time; see slab_attention.hpp. Weights are
// recomputed from the totals of the forward product (Dao, FlashAttention-2, 2023, algorithm 2, by
// rows and by columns in turn instead of with atomic sums).
#pragma once
#include "cuda/products/slab_attention.hpp"

namespace wl {

// Turns the scores of a batch into weights, 2^(scale score - log_total), and the gradients of
// weights into gradients of scores, weight (gradient - mean). Positions without an entry become 0.
// `fact_of(j, e)` is the logarithm of the total and the mean of an entry's row.
template <class Facts>
WL_DEVICE void weigh_entries(float (&weights)[2][2], float (&gradients)[2][2],
                             const lane_entries& known, float scale, int lane,
                             const Facts& fact_of) {
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const pack<float, 2> fact = fact_of(j, e);
      const float weight = power_of_2(fmaf(weights[j][e], scale, -fact.at[0]));
      weights[j][e] = known.has(j, e, lane) ? weight : 0.0f;
      gradients[j][e] = weights[j][e] * (gradients[j][e] - fact.at[1]);
    }
}

// The state of a warp for two panels of rows: their rows of C and G, and sums of rows of B. The
// slab of B is `other` bytes before the slab of D.
template <int DIM, int WHOLE, class T>
struct row_gradient_panels {
  static constexpr bool told = true;
  float scale;
  int other;
  own_rows<DIM, WHOLE, T> rows_C, rows_G;
  pack<float, 2> facts[2];
  float sums[2][DIM / 16][4];

  WL_DEVICE void take(int i, int lane, const lane_entries& known, const unsigned char* stage) {
    float weights[2][2], of_scores[2][2];
    multiply(weights, of_scores, rows_C, rows_G, i, stage, stage + other, known, lane);
    weigh_entries(weights, of_scores, known, scale, lane, [&](int, int) { return facts[i]; });
    add_rows<DIM, T>(sums[i], of_scores, shared_offset(stage), known, lane);
  }
};

// Stores the facts of rows, which are the logarithm of the total to base 2 and the mean of the
// gradients of weights, `padded` of them for each block. Stores the gradient of C if it is
// requested.
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
  const own_pair<DIM, HEIGHT> own(it, m, shares, slabs, starts, entries);
  const i64 block = own.block;
  const rows_of<T> its_C{C + block * C_step, C_ld, m}, its_G{G + block * G_step, G_ld, m},
      its_B{B + block * B_step, B_ld, n}, its_D{D + block * D_step, D_ld, n},
      its_out{out + block * out_step, out_ld, m};
  float* const its_facts = facts + block * padded * 2;
  row_gradient_panels<DIM, WHOLE, T> panels{
      score_scale(alpha), tile_rows<DIM, WHOLE, WL_BLOCK>::size(HEIGHT), {}, {}, {}, {}};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const i64 r = own.first_row + PANEL_ROWS * i + lane / 4;
    const float part =
        r < m ? part_of_dot<DIM, WHOLE>(lane % 4, its_G.row(r), its_out.row(r), p) : 0.0f;
    panels.facts[i] = {
        {r < m ? log_totals[block * log_totals_step + r] * LOG2_E : 0.0f, sum_of_row(it, part)}};
    if (r < m && lane % 4 == 0)
      *reinterpret_cast<pack<float, 2>*>(its_facts + 2 * r) = panels.facts[i];
  }
  if (!of_C)
    return;
  const slab_pair<DIM, HEIGHT, WHOLE, 0, T> pair{its_B, its_D, k, p, nullptr, own.slabs, bytes};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    panels.rows_C.load(i, its_C, own.first_row + PANEL_ROWS * i, k, alpha < 0 ? 0x80008000u : 0u,
                       lane);
    panels.rows_G.load(i, its_G, own.first_row + PANEL_ROWS * i, p, 0, lane);
  }
  own.for_batches(it, pair, panels);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const i64 first = own.first_row + PANEL_ROWS * i;
    T* const its_of_C = of_C + block * of_C_step + first * of_C_ld;
    bool finite = true;
#pragma unroll
    for (int e = 0; e < 2; ++e)
      finite = scale_sums(panels.sums[i], e, alpha) && finite;
    if (ballot(!finite)) {
      for (int r = 0; r < PANEL_ROWS && first + r < m; ++r)
        row_gradient_by_entries<DIM>(it, own.entries(), PANEL_ROWS * i + r, its_C.row(first + r),
                                     its_G.row(first + r), its_B, its_D, k, p, alpha * LOG2_E,
                                     its_facts[2 * (first + r)], its_facts[2 * (first + r) + 1],
                                     alpha, its_of_C + r * of_C_ld);
    } else {
      store_sums<DIM, WHOLE>(panels.sums[i], its_of_C, of_C_ld, m - first, k, lane);
    }
  }
}

// The state of a warp for two panels of columns: their rows of B and D, sums of rows of C and G in
// adjacent slabs, and the totals and means of the rows.
template <int DIM, int WHOLE, class T>
struct column_gradient_panels {
  static constexpr bool told = true;
  float scale;
  int other;
  own_rows<DIM, WHOLE, T> rows_B, rows_D;
  float sums_B[2][DIM / 16][4], sums_D[2][DIM / 16][4];

  WL_DEVICE void take(int i, int lane, const lane_entries& known, const unsigned char* stage) {
    const unsigned char* const at_G = stage + other;
    float weights[2][2], of_scores[2][2];
    multiply(weights, of_scores, rows_B, rows_D, i, stage, at_G, known, lane);
    weigh_entries(weights, of_scores, known, scale, lane, [&](int j, int e) {
      return *reinterpret_cast<const pack<float, 2>*>(
          at_G + other + 8 * row_in_slab<DIM>(known.summed[2 * j + e]));
    });
    add_rows<DIM, T>(sums_D[i], weights, shared_offset(at_G), known, lane);
    add_rows<DIM, T>(sums_B[i], of_scores, shared_offset(stage), known, lane);
  }
};

// The gradients of the rows of B and D, either of which may be null, by panels of the transposed
// pattern. Its columns are the m rows of C and G.
template <int DIM, int HEIGHT, int WHOLE, class T>
WL_DEVICE void
slab_column_gradients(const item& it, i64 m, i64 n, i64 k, i64 p, i64 shares, i64 slabs, i64 padded,
                      const i32* starts, const u8* entries, const T* C, i64 C_ld, i64 C_step,
                      const T* B, i64 B_ld, i64 B_step, const T* D, i64 D_ld, i64 D_step,
                      const T* G, i64 G_ld, i64 G_step, const float* facts, T* of_B, i64 of_B_ld,
                      i64 of_B_step, T* of_D, i64 of_D_ld, i64 of_D_step, float alpha) {
  WL_DYNAMIC_SHARED(bytes);
  const int lane = lane_of(it);
  const own_pair<DIM, HEIGHT> own(it, n, shares, slabs, starts, entries);
  const i64 block = own.block;
  const rows_of<T> its_C{C + block * C_step, C_ld, m}, its_G{G + block * G_step, G_ld, m},
      its_B{B + block * B_step, B_ld, n}, its_D{D + block * D_step, D_ld, n};
  const float* const its_facts = facts + block * padded * 2;
  const slab_pair<DIM, HEIGHT, WHOLE, 8, T> pair{
      its_C, its_G, k, p, reinterpret_cast<const u8*>(its_facts), own.slabs, bytes};
  column_gradient_panels<DIM, WHOLE, T> panels{score_scale(alpha), pair.of_slab, {}, {}, {}, {}};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    panels.rows_B.load(i, its_B, own.first_row + PANEL_ROWS * i, k, alpha < 0 ? 0x80008000u : 0u,
                       lane);
    panels.rows_D.load(i, its_D, own.first_row + PANEL_ROWS * i, p, 0, lane);
  }
  own.for_batches(it, pair, panels);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const i64 first = own.first_row + PANEL_ROWS * i;
    T* const out_B = of_B ? of_B + block * of_B_step + first * of_B_ld : of_B;
    T* const out_D = of_D ? of_D + block * of_D_step + first * of_D_ld : of_D;
    bool finite = true;
#pragma unroll
    for (int e = 0; e < 2; ++e)
      finite =
          scale_sums(panels.sums_B[i], e, alpha) && scale_sums(panels.sums_D[i], e, 1.0f) && finite;
    if (ballot(!finite)) {
      for (int r = 0; r < PANEL_ROWS && first + r < n; ++r)
        column_gradients_by_entries<DIM>(
            it, own.entries(), PANEL_ROWS * i + r, its_B.row(first + r), its_D.row(first + r),
            its_C, its_G, its_facts, its_facts + 1, 2, k, p, alpha,
            out_B ? out_B + r * of_B_ld : out_B, out_D ? out_D + r * of_D_ld : out_D);
    } else {
      if (out_B)
        store_sums<DIM, WHOLE>(panels.sums_B[i], out_B, of_B_ld, n - first, k, lane);
      if (out_D)
        store_sums<DIM, WHOLE>(panels.sums_D[i], out_D, of_D_ld, n - first, p, lane);
    }
  }
}

} // namespace wl
