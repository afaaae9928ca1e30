// softmax(alpha C B^T) D by dense tiles on tensor cores, for patterns that fill their tiles: all
// sums of a tile are computed, and a word of bits marks the entries of each row. Weights stay in
// registers (Dao, FlashAttention-2, 2023); tiles without entries are skipped.
#pragma once
#include "cuda/products/tile_products.hpp"

namespace wl {

// Sums of powers of 2 of the scores of rows, relative to one score of each row. No later score
// exceeds it by more than SLACK, so no power exceeds 2^SLACK. Four lanes share a row.
constexpr float SLACK = 8;
template <int M>
struct running_softmax {
  float from[M][2], total[M][2];

  WL_DEVICE running_softmax() {
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        from[i][h] = lowest(), total[i][h] = 0;
  }

  // Turns scores into powers, and positions without an entry into 0. Calls `rescale` with the
  // factors of earlier sums, unless all factors of the warp are 1.
  template <bool MASKED, int N, class Rescale>
  WL_DEVICE void take(const item& it, float (&scores)[M][N][4], const bits_of_rows<M>& bits,
                      float scale, const Rescale& rescale) {
    float most[M][2];
    bool grows = false;
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float largest = lowest();
#pragma unroll
        for (int j = 0; j < N; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& score = scores[i][j][2 * h + e];
            if (MASKED)
              score = bits.has(i, h, j, e) ? score : lowest();
            largest = fmaxf(largest, score);
          }
        largest = fmaxf(largest, shuffle_xor(it, largest, 1));
        most[i][h] = fmaxf(largest, shuffle_xor(it, largest, 2)) * scale;
        grows = grows || most[i][h] > from[i][h] + SLACK;
      }
    if (ballot(grows)) {
      float factor[M][2];
#pragma unroll
      for (int i = 0; i < M; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float now = most[i][h] > from[i][h] + SLACK ? most[i][h] : from[i][h];
          factor[i][h] = now == from[i][h] ? 1.0f : power_of_2(from[i][h] - now);
          from[i][h] = now;
          total[i][h] *= factor[i][h];
        }
      rescale(factor);
    }
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // minus infinity minus minus infinity would be NaN
        const float minus = from[i][h] == lowest() ? 0.0f : -from[i][h];
        float sum = 0;
#pragma unroll
        for (int j = 0; j < N; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& score = scores[i][j][2 * h + e];
            score = power_of_2(fmaf(score, scale, minus));
            sum += score;
          }
        total[i][h] += sum;
      }
  }
  // As above, with a test of whether all positions are entries.
  template <int N, class Rescale>
  WL_DEVICE void take(const item& it, float (&scores)[M][N][4], const bits_of_rows<M>& bits,
                      bool all, float scale, const Rescale& rescale) {
    if (all)
      take<false>(it, scores, bits, scale, rescale);
    else
      take<true>(it, scores, bits, scale, rescale);
  }
};

// The sum over the four lanes that share a row.
WL_DEVICE float sum_of_row(const item& it, float value) {
  value += shuffle_xor(it, value, 1);
  return value + shuffle_xor(it, value, 2);
}

// The factor that turns the powers of a row into weights: 0 for a row without weight.
WL_DEVICE float share_of_total(float total) { return total == 0 ? 0.0f : 1.0f / total; }

// The logarithm to base 2 of a sum of powers. For a row without weight it is plus infinity: the
// powers of all scores minus it are then 0, like the weights (FlashAttention-2 of Dao 2023).
WL_DEVICE float log_of_powers(float from, float total) {
  return total == 0 ? -lowest() : from + log_2(total);
}

// Row `row` of a tile's rows, computed by a warp entry by entry, for operands with infinities and
// NaN: a column without an entry must not contribute to a sum through a weight of 0.
template <int DIM, class List, class T>
WL_DEVICE void attend_by_entries(const item& it, const List& tiles, int row, const T* of_C,
                                 const rows_of<T>& B, const rows_of<T>& D, i64 k, i64 p,
                                 float scale, T* out) {
  constexpr int each = DIM / 32;
  const int lane = lane_of(it);
  float c[each], sums[each] = {}, largest = lowest(), total = 0;
  load_by_lanes(lane, of_C, k, c);
  tiles.for_entries(row, [&](i64 column) {
    const float score = dot_by_lanes(it, c, B.row(column), k) * scale;
    const float most = fmaxf(largest, score), from = most == lowest() ? 0.0f : most;
    const float factor = power_of_2(largest - from), power = power_of_2(score - from);
    float d[each];
    load_by_lanes(lane, D.row(column), p, d);
    for (int i = 0; i < each; ++i)
      sums[i] = (factor == 1.0f ? sums[i] : sums[i] * factor) + power * d[i];
    total = total * factor + power;
    largest = most;
  });
  const float share = share_of_total(total);
  for (int i = 0; i < each; ++i)
    if (lane + 32 * i < p)
      out[lane + 32 * i] = narrowed<T>::of(sums[i] * share);
}

// A block processes a panel of 128 rows, and each of its warps 16 M rows. WHOLE: rows may be copied
// 16 bytes at a time. The logarithms of the totals are stored if `log_totals` is not null.
template <int DIM, int M, int WARPGROUPS, int WHOLE, class T>
WL_DEVICE void tile_attention(const item& it, i64 m, i64 n, i64 k, i64 p, i64 batch, i64 panels,
                              const i32* order, const i32* starts, const i32* columns,
                              const i32* masks, const u8* words, const T* C, i64 C_ld, i64 C_step,
                              const T* B, i64 B_ld, i64 B_step, const T* D, i64 D_ld, i64 D_step,
                              T* out, i64 out_ld, i64 out_step, float* log_totals,
                              i64 log_totals_step, float alpha) {
  constexpr int threads = WL_BLOCK, warps = threads / 32, N = TILE_COLUMNS / 8;
  static_assert(warps * 16 * M == TILE_ROWS, "warps share the rows of a tile");
  using rows = tile_rows<DIM, WHOLE, threads>;
  using products = typename products_of<WARPGROUPS, DIM, M, T>::type;
  WL_DYNAMIC_SHARED(bytes);
  const int t = it.thread(), warp = wave_of(it), lane = lane_of(it);
  const i64 panel = order[it.block() / batch], block = it.block() % batch;
  const tile_list tiles{starts[panel], starts[panel + 1], columns, masks, words};
  const rows_of<T> of_C{C + block * C_step, C_ld, m}, of_B{B + block * B_step, B_ld, n},
      of_D{D + block * D_step, D_ld, n};
  unsigned char* const at_C = bytes;
  const auto stage_of = [&](i32 u) {
    return bytes + rows::size(TILE_ROWS) +
           ((u - tiles.first) & 1) * (2 * rows::size(TILE_COLUMNS) + MASK_BYTES);
  };
  const auto bring = [&](i32 u) {
    if (u < tiles.last) {
      unsigned char* const stage = stage_of(u);
      const i64 column = i64(columns[u]) * TILE_COLUMNS;
      rows::template bring<TILE_COLUMNS>(t, stage, of_B, column, k);
      rows::template bring<TILE_COLUMNS>(t, stage + rows::size(TILE_COLUMNS), of_D, column, p);
      tiles.template bring_words<threads>(t, stage + 2 * rows::size(TILE_COLUMNS), u);
    }
    commit_copies();
  };
  rows::template bring<TILE_ROWS>(t, at_C, of_C, panel * TILE_ROWS, k);
  if (alpha < 0)
    rows::template change_signs<TILE_ROWS>(t, at_C);
  bring(tiles.first);
  const float scale = score_scale(alpha);
  const int row = warp * 16 * M;
  float sums[M][DIM / 8][4] = {};
  running_softmax<M> softmax;
#pragma unroll 1
  for (i32 u = tiles.first; u < tiles.last; ++u) {
    wait_for_copies<0>();
    products::publish();
    it.barrier(); // all copies have arrived, and all warps have used the previous tiles
    bring(u + 1);
    const unsigned char* const stage = stage_of(u);
    const unsigned char* const its_words = stage + 2 * rows::size(TILE_COLUMNS);
    const bits_of_rows<M> bits(its_words, row, lane);
    if (!products::any(its_words, row, lane, bits))
      continue;
    float scores[M][N][4];
    products::begin();
    products::multiply(scores, shared_offset(at_C), row, shared_offset(stage), 0, lane);
    products::end();
    products::template wait<0>(scores);
    const bool all = !ballot(!bits.all());
    softmax.take(it, scores, bits.for_lane(lane), all, scale, [&](const float (&factor)[M][2]) {
#pragma unroll
      for (int i = 0; i < M; ++i)
#pragma unroll
        for (int j = 0; j < DIM / 8; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            sums[i][j][e] *= factor[i][e / 2];
    });
    typename products::template weights_of<N> weights(scores);
    products::begin();
    products::add(sums, weights, shared_offset(stage + rows::size(TILE_COLUMNS)), 0, lane);
    products::end();
    products::template wait<0>(sums, weights);
  }
  bool finite = true;
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float total = sum_of_row(it, softmax.total[i][h]);
      finite = scale_row(sums[i], h, share_of_total(total)) && finite;
      const i64 r = panel * TILE_ROWS + row + 16 * i + 8 * h + lane / 4;
      if (log_totals && lane % 4 == 0 && r < m)
        log_totals[block * log_totals_step + r] = log_of_powers(softmax.from[i][h], total) * LN_2;
    }
  T* const of_out = out + block * out_step;
  if (any_of_block(!finite)) {
    for (int r = warp; r < TILE_ROWS; r += warps)
      if (panel * TILE_ROWS + r < m)
        attend_by_entries<DIM>(it, tiles, r, of_C.row(panel * TILE_ROWS + r), of_B, of_D, k, p,
                               alpha * LOG2_E, of_out + (panel * TILE_ROWS + r) * out_ld);
  } else {
    store_rows<DIM, M, WHOLE>(sums, of_out, out_ld, panel * TILE_ROWS + row, m, p, lane);
  }
}

} // namespace wl
