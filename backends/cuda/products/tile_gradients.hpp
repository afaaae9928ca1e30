// The gradients of attention by tiles: scores and weights are recomputed tile by tile, so that no
// array with the size of the entries is stored (Dao, FlashAttention-2, 2023, algorithm 2, by rows
// and by columns in turn instead of with atomic sums).
#pragma once
#include "cuda/products/tile_attention.hpp"

namespace wl {

// of_weights = weights (of_weights - mean)
template <int M, int N, class Mean>
WL_DEVICE void to_score_gradients(float (&of_weights)[M][N][4], const float (&weights)[M][N][4],
                                  const Mean& mean) {
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        of_weights[i][j][e] = weights[i][j][e] * (of_weights[i][j][e] - mean(i, j, e));
}

// Turns scores into weights, 2^(scale score - log_total), and positions without an entry into 0.
template <bool MASKED, int M, int N, class Log>
WL_DEVICE void to_weights(float (&scores)[M][N][4], const bits_of_rows<M>& bits, float scale,
                          const Log& log_total) {
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float weight = power_of_2(fmaf(scores[i][j][e], scale, -log_total(i, j, e)));
        scores[i][j][e] = !MASKED || bits.has(i, e / 2, j, e % 2) ? weight : 0.0f;
      }
}
template <int M, int N, class Log>
WL_DEVICE void to_weights(float (&scores)[M][N][4], const bits_of_rows<M>& bits, bool all,
                          float scale, const Log& log_total) {
  if (all)
    to_weights<false>(scores, bits, scale, log_total);
  else
    to_weights<true>(scores, bits, scale, log_total);
}

// Adds up powers of scores and their products with the gradients of weights.
template <int M>
struct running_mean {
  running_softmax<M> softmax;
  float weighted[M][2] = {};

  template <int N>
  WL_DEVICE void take(const item& it, float (&scores)[M][N][4], const float (&of_weights)[M][N][4],
                      const bits_of_rows<M>& bits, bool all, float scale) {
    softmax.take(it, scores, bits, all, scale, [&](const float (&factor)[M][2]) {
#pragma unroll
      for (int i = 0; i < M; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          weighted[i][h] *= factor[i][h];
    });
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int j = 0; j < N; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (bits.has(i, h, j, e)) // at other positions the gradient may have any value
              weighted[i][h] += scores[i][j][2 * h + e] * of_weights[i][j][2 * h + e];
  }
};

// The gradient of row `row` of C, entry by entry; see attend_by_entries.
template <int DIM, class List, class T>
WL_DEVICE void row_gradient_by_entries(const item& it, const List& tiles, int row, const T* of_C,
                                       const T* of_G, const rows_of<T>& B, const rows_of<T>& D,
                                       i64 k, i64 p, float scale, float log_total, float mean,
                                       float alpha, T* out) {
  constexpr int each = DIM / 32;
  const int lane = lane_of(it);
  float c[each], g[each], sums[each] = {};
  load_by_lanes(lane, of_C, k, c);
  load_by_lanes(lane, of_G, p, g);
  tiles.for_entries(row, [&](i64 column) {
    const float weight = power_of_2(dot_by_lanes(it, c, B.row(column), k) * scale - log_total);
    const float of_score = weight * (dot_by_lanes(it, g, D.row(column), p) - mean);
    float b[each];
    load_by_lanes(lane, B.row(column), k, b);
    for (int i = 0; i < each; ++i)
      sums[i] += of_score * b[i];
  });
  for (int i = 0; i < each; ++i)
    if (lane + 32 * i < k)
      out[lane + 32 * i] = narrowed<T>::of(alpha * sums[i]);
}

// The first pass over a panel computes the divisors of the weights of its rows, as logarithms to
// base 2, and the means of the gradients of their weights. KNOWN: `out` and `log_totals` are
// results of the forward product, and there is no first pass. The second pass, if of_C is not null,
// computes the gradients of the rows of C, WIDE columns of a tile at once.
template <int DIM, int M, int WARPGROUPS, int WIDE, int STAGES, int WHOLE, int KNOWN, class T>
WL_DEVICE void tile_row_gradients(const item& it, i64 m, i64 n, i64 k, i64 p, i64 batch, i64 panels,
                                  const i32* order, const i32* starts, const i32* columns,
                                  const i32* masks, const u8* words, const T* C, i64 C_ld,
                                  i64 C_step, const T* B, i64 B_ld, i64 B_step, const T* D,
                                  i64 D_ld, i64 D_step, const T* G, i64 G_ld, i64 G_step,
                                  const T* out, i64 out_ld, i64 out_step, const float* log_totals,
                                  i64 log_totals_step, float* logs, float* means, T* of_C,
                                  i64 of_C_ld, i64 of_C_step, float alpha) {
  constexpr int threads = WL_BLOCK, warps = threads / 32;
  static_assert(warps * 16 * M == TILE_ROWS, "warps share the rows of a tile");
  using rows = tile_rows<DIM, WHOLE, threads>;
  using products = typename products_of<WARPGROUPS, DIM, M, T>::type;
  WL_DYNAMIC_SHARED(bytes);
  const int t = it.thread(), warp = wave_of(it), lane = lane_of(it);
  const i64 panel = order[it.block() / batch], block = it.block() % batch;
  const tile_list tiles{starts[panel], starts[panel + 1], columns, masks, words};
  const i32 count = tiles.last - tiles.first;
  const rows_of<T> its_C{C + block * C_step, C_ld, m}, its_G{G + block * G_step, G_ld, m},
      its_B{B + block * B_step, B_ld, n}, its_D{D + block * D_step, D_ld, n};
  unsigned char* const at_C = bytes;
  unsigned char* const at_G = bytes + rows::size(TILE_ROWS);
  unsigned char* const stages = at_G + rows::size(TILE_ROWS);
  constexpr int of_tile = rows::size(TILE_COLUMNS), of_stage = 2 * of_tile + MASK_BYTES;
  const i32 before = KNOWN ? 0 : count, turns = of_C ? before + count : before;
  const auto stage_of = [&](i32 turn) { return stages + turn % STAGES * of_stage; };
  const auto bring = [&](i32 turn) {
    if (turn < turns) {
      const i32 u = tiles.first + (turn < before ? turn : turn - before);
      unsigned char* const stage = stage_of(turn);
      const i64 column = i64(columns[u]) * TILE_COLUMNS;
      rows::template bring<TILE_COLUMNS>(t, stage, its_B, column, k);
      rows::template bring<TILE_COLUMNS>(t, stage + of_tile, its_D, column, p);
      tiles.template bring_words<threads>(t, stage + 2 * of_tile, u);
    }
    commit_copies();
  };
  const auto arrive = [&](i32 turn) {
    if (STAGES == 1) {
      it.barrier(); // all have used the previous tile
      bring(turn);
    }
    wait_for_copies<0>();
    products::publish();
    it.barrier(); // all copies have arrived
    if (STAGES > 1)
      bring(turn + 1);
  };
  if (turns > 0) {
    rows::template bring<TILE_ROWS>(t, at_C, its_C, panel * TILE_ROWS, k);
    if (alpha < 0)
      rows::template change_signs<TILE_ROWS>(t, at_C);
    rows::template bring<TILE_ROWS>(t, at_G, its_G, panel * TILE_ROWS, p);
    if (STAGES > 1)
      bring(0);
  }
  const float scale = score_scale(alpha);
  const int row = warp * 16 * M;
  const i64 first_row = (block * panels + panel) * TILE_ROWS; // of the facts
  float log_total[M][2], mean[M][2];
  if constexpr (KNOWN) {
    const rows_of<T> its_out{out + block * out_step, out_ld, m};
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // Rows of G are read again, from the cache, while they are copied for the tensor cores.
        const i64 r = panel * TILE_ROWS + row + 16 * i + 8 * h + lane / 4;
        const float part =
            r < m ? part_of_dot<DIM, WHOLE>(lane % 4, its_G.row(r), its_out.row(r), p) : 0.0f;
        mean[i][h] = sum_of_row(it, part);
        log_total[i][h] = r < m ? log_totals[block * log_totals_step + r] * LOG2_E : 0.0f;
      }
  } else {
    running_mean<M> found;
#pragma unroll 1
    for (i32 turn = 0; turn < count; ++turn) {
      arrive(turn);
      const unsigned char* const stage = stage_of(turn);
      const bits_of_rows<M> bits(stage + 2 * of_tile, row, lane);
      if (!products::any(stage + 2 * of_tile, row, lane, bits))
        continue;
      constexpr int N = TILE_COLUMNS / 8;
      float scores[M][N][4], of_weights[M][N][4];
      products::begin();
      products::multiply(scores, shared_offset(at_C), row, shared_offset(stage), 0, lane);
      products::multiply(of_weights, shared_offset(at_G), row, shared_offset(stage + of_tile), 0,
                         lane);
      products::end();
      products::template wait<0>(scores, of_weights);
      found.take(it, scores, of_weights, bits.for_lane(lane), !ballot(!bits.all()), scale);
    }
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float total = sum_of_row(it, found.softmax.total[i][h]);
        const float weighted = sum_of_row(it, found.weighted[i][h]);
        // For a row without weight, a NaN would cause its whole panel to be computed entry by
        // entry.
        mean[i][h] = weighted * share_of_total(total);
        log_total[i][h] = log_of_powers(found.softmax.from[i][h], total);
      }
  }
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (lane % 4 == 0) {
        const i64 r = first_row + row + 16 * i + 8 * h + lane / 4;
        logs[r] = log_total[i][h];
        means[r] = mean[i][h];
      }
  if (!of_C)
    return;
  float sums[M][DIM / 8][4] = {};
#pragma unroll 1
  for (i32 turn = before; turn < turns; ++turn) {
    arrive(turn);
    const unsigned char* const stage = stage_of(turn);
    const bits_of_rows<M> bits(stage + 2 * of_tile, row, lane);
    if (!products::any(stage + 2 * of_tile, row, lane, bits))
      continue;
    const bool all = !ballot(!bits.all());
#pragma unroll 1
    for (int first = 0; first < TILE_COLUMNS; first += WIDE) {
      constexpr int N = WIDE / 8;
      float weights[M][N][4], of_scores[M][N][4];
      products::begin();
      products::multiply(weights, shared_offset(at_C), row, shared_offset(stage), first, lane);
      products::end();
      products::multiply(of_scores, shared_offset(at_G), row, shared_offset(stage + of_tile), first,
                         lane);
      products::end();
      products::template wait<1>(weights);
      to_weights(weights, bits.for_lane(lane, first > 0), all, scale,
                 [&](int i, int, int e) { return log_total[i][e / 2]; });
      products::template wait<0>(of_scores);
      to_score_gradients(of_scores, weights, [&](int i, int, int e) { return mean[i][e / 2]; });
      typename products::template weights_of<N> packed(of_scores);
      products::begin();
      products::add(sums, packed, shared_offset(stage), first, lane);
      products::end();
      products::template wait<0>(sums, packed);
    }
  }
  bool finite = true;
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h)
      finite = scale_row(sums[i], h, alpha) && finite;
  T* const its_of_C = of_C + block * of_C_step;
  if (any_of_block(!finite)) {
    for (int r = warp; r < TILE_ROWS; r += warps) {
      const i64 own = panel * TILE_ROWS + r;
      if (own < m)
        row_gradient_by_entries<DIM>(it, tiles, r, its_C.row(own), its_G.row(own), its_B, its_D, k,
                                     p, alpha * LOG2_E, logs[first_row + r], means[first_row + r],
                                     alpha, its_of_C + own * of_C_ld);
    }
  } else {
    store_rows<DIM, M, WHOLE>(sums, its_of_C, of_C_ld, panel * TILE_ROWS + row, m, k, lane);
  }
}

// The gradients of row `row` of B and D, entry by entry; see attend_by_entries. `apart` is the
// distance of the facts of rows.
template <int DIM, class List, class T>
WL_DEVICE void column_gradients_by_entries(const item& it, const List& tiles, int row,
                                           const T* of_B, const T* of_D, const rows_of<T>& C,
                                           const rows_of<T>& G, const float* logs,
                                           const float* means, i64 apart, i64 k, i64 p, float alpha,
                                           T* out_B, T* out_D) {
  constexpr int each = DIM / 32;
  const int lane = lane_of(it);
  float b[each], d[each], sums_B[each] = {}, sums_D[each] = {};
  load_by_lanes(lane, of_B, k, b);
  load_by_lanes(lane, of_D, p, d);
  tiles.for_entries(row, [&](i64 column) {
    const float score = dot_by_lanes(it, b, C.row(column), k) * (alpha * LOG2_E);
    const float weight = power_of_2(score - logs[column * apart]);
    const float of_score = weight * (dot_by_lanes(it, d, G.row(column), p) - means[column * apart]);
    float c[each], g[each];
    load_by_lanes(lane, C.row(column), k, c);
    load_by_lanes(lane, G.row(column), p, g);
    for (int i = 0; i < each; ++i) {
      sums_B[i] += of_score * c[i];
      sums_D[i] += weight * g[i];
    }
  });
  for (int i = 0; i < each; ++i) {
    if (out_B && lane + 32 * i < k)
      out_B[lane + 32 * i] = narrowed<T>::of(alpha * sums_B[i]);
    if (out_D && lane + 32 * i < p)
      out_D[lane + 32 * i] = narrowed<T>::of(sums_D[i]);
  }
}

// The gradients of the rows of B and D, either of which may be null, by panels of the transposed
// pattern. Its columns are the m rows of C and G. There are `padded` facts for each block.
template <int DIM, int M, int WARPGROUPS, int WIDE, int STAGES, int WHOLE, class T>
WL_DEVICE void
tile_column_gradients(const item& it, i64 m, i64 n, i64 k, i64 p, i64 batch, i64 padded,
                      const i32* order, const i32* starts, const i32* columns, const i32* masks,
                      const u8* words, const T* C, i64 C_ld, i64 C_step, const T* B, i64 B_ld,
                      i64 B_step, const T* D, i64 D_ld, i64 D_step, const T* G, i64 G_ld,
                      i64 G_step, const float* logs, const float* means, T* of_B, i64 of_B_ld,
                      i64 of_B_step, T* of_D, i64 of_D_ld, i64 of_D_step, float alpha) {
  constexpr int threads = WL_BLOCK, warps = threads / 32;
  static_assert(warps * 16 * M == TILE_ROWS, "warps share the rows of a tile");
  using rows = tile_rows<DIM, WHOLE, threads>;
  using products = typename products_of<WARPGROUPS, DIM, M, T>::type;
  WL_DYNAMIC_SHARED(bytes);
  const int t = it.thread(), warp = wave_of(it), lane = lane_of(it);
  const i64 panel = order[it.block() / batch], block = it.block() % batch;
  const tile_list tiles{starts[panel], starts[panel + 1], columns, masks, words};
  const rows_of<T> its_C{C + block * C_step, C_ld, m}, its_G{G + block * G_step, G_ld, m},
      its_B{B + block * B_step, B_ld, n}, its_D{D + block * D_step, D_ld, n};
  const float* const its_logs = logs + block * padded;
  const float* const its_means = means + block * padded;
  unsigned char* const at_B = bytes;
  unsigned char* const at_D = bytes + rows::size(TILE_ROWS);
  unsigned char* const stages = at_D + rows::size(TILE_ROWS);
  constexpr int of_tile = rows::size(TILE_COLUMNS), of_facts = TILE_COLUMNS * 4;
  // Rows that wgmma reads begin at multiples of 1024 bytes.
  constexpr int of_stage = (2 * of_tile + MASK_BYTES + 2 * of_facts + 1023) / 1024 * 1024;
  const auto stage_of = [&](i32 u) { return stages + (u - tiles.first) % STAGES * of_stage; };
  const auto bring = [&](i32 u) {
    if (u < tiles.last) {
      unsigned char* const stage = stage_of(u);
      const i64 column = i64(columns[u]) * TILE_COLUMNS;
      rows::template bring<TILE_COLUMNS>(t, stage, its_C, column, k);
      rows::template bring<TILE_COLUMNS>(t, stage + of_tile, its_G, column, p);
      tiles.template bring_words<threads>(t, stage + 2 * of_tile, u);
      if (t < of_facts / 16)
        copy_16_bytes_if(true, shared_offset(stage + 2 * of_tile + MASK_BYTES + t * 16),
                         its_logs + column + t * 4);
      else if (t < of_facts / 8)
        copy_16_bytes_if(true, shared_offset(stage + 2 * of_tile + MASK_BYTES + t * 16),
                         its_means + column + (t - of_facts / 16) * 4);
    }
    commit_copies();
  };
  rows::template bring<TILE_ROWS>(t, at_B, its_B, panel * TILE_ROWS, k);
  if (alpha < 0)
    rows::template change_signs<TILE_ROWS>(t, at_B);
  rows::template bring<TILE_ROWS>(t, at_D, its_D, panel * TILE_ROWS, p);
  if (STAGES > 1)
    bring(tiles.first);
  const float scale = score_scale(alpha);
  const int row = warp * 16 * M;
  float sums_B[M][DIM / 8][4] = {}, sums_D[M][DIM / 8][4] = {};
#pragma unroll 1
  for (i32 u = tiles.first; u < tiles.last; ++u) {
    if (STAGES == 1) {
      it.barrier(); // all have used the previous tile
      bring(u);
    }
    wait_for_copies<0>();
    products::publish();
    it.barrier(); // all copies have arrived
    if (STAGES > 1)
      bring(u + 1);
    const unsigned char* const stage = stage_of(u);
    const bits_of_rows<M> bits(stage + 2 * of_tile, row, lane);
    if (!products::any(stage + 2 * of_tile, row, lane, bits))
      continue;
    const u32 at_C = shared_offset(stage), at_G = shared_offset(stage + of_tile);
    const float* const facts = reinterpret_cast<const float*>(stage + 2 * of_tile + MASK_BYTES);
    const bool all = !ballot(!bits.all());
#pragma unroll 1
    for (int first = 0; first < TILE_COLUMNS; first += WIDE) {
      constexpr int N = WIDE / 8;
      float weights[M][N][4], of_scores[M][N][4];
      const float* const own_facts = facts + first + lane % 4 * 2;
      const auto multiply_gradients = [&] {
        products::multiply(of_scores, shared_offset(at_D), row, at_G, first, lane);
        products::end();
      };
      products::begin();
      products::multiply(weights, shared_offset(at_B), row, at_C, first, lane);
      products::end();
      if constexpr (products::WAITS) // without a wait it would take registers before it is needed
        multiply_gradients();
      products::template wait<1>(weights);
      to_weights(weights, bits.for_lane(lane, first > 0), all, scale,
                 [&](int, int j, int e) { return own_facts[8 * j + e % 2]; });
      typename products::template weights_of<N> of_D_sums(weights);
      products::begin();
      products::add(sums_D, of_D_sums, at_G, first, lane);
      products::end();
      if constexpr (!products::WAITS)
        multiply_gradients();
      products::template wait<1>(of_scores);
      to_score_gradients(of_scores, weights, [&](int, int j, int e) {
        return own_facts[TILE_COLUMNS + 8 * j + e % 2];
      });
      typename products::template weights_of<N> of_B_sums(of_scores);
      products::begin();
      products::add(sums_B, of_B_sums, at_C, first, lane);
      products::end();
      products::template wait<0>(sums_D, sums_B, of_D_sums, of_B_sums);
    }
  }
  bool finite = true;
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h)
      finite = scale_row(sums_B[i], h, alpha) && scale_row(sums_D[i], h, 1.0f) && finite;
  const i64 first_row = panel * TILE_ROWS;
  T* const out_B = of_B ? of_B + block * of_B_step : of_B;
  T* const out_D = of_D ? of_D + block * of_D_step : of_D;
  if (any_of_block(!finite)) {
    for (int r = warp; r < TILE_ROWS; r += warps) {
      const i64 own = first_row + r;
      if (own < n)
        column_gradients_by_entries<DIM>(
            it, tiles, r, its_B.row(own), its_D.row(own), its_C, its_G, its_logs, its_means, 1, k,
            p, alpha, out_B ? out_B + own * of_B_ld : out_B, out_D ? out_D + own * of_D_ld : out_D);
    }
  } else {
    if (out_B)
      store_rows<DIM, M, WHOLE>(sums_B, out_B, of_B_ld, first_row + row, n, k, lane);
    if (out_D)
      store_rows<DIM, M, WHOLE>(sums_D, out_D, of_D_ld, first_row + row, n, p, lane);
  }
}

} // namespace wl
