// The gradients of fusedmm for rows of consecutive columns: what an entry comes to is computed by
// the kernel by rows and, again, by that by columns, so that nothing is stored for entries (Dao,
// FlashAttention-2, 2023).
#pragma once
#include "fusedmm.hpp"

namespace wl {

// Rows of a dense operand; `step` is the distance of blocks.
template <class T>
struct rows_of_batch {
  const T* data;
  i64 ld, step;
  WL_DEVICE const T* row(i64 b, i64 i) const { return data + b * step + i * ld; }
};

// What by columns is needed of each row of the softmax: the score that powers are relative to, one
// over their sum, and the mean of the weights' gradients. Relative to the logarithm of their total,
// powers are weights.
template <class S>
struct row_facts {
  S from, share, mean;
};

// L lanes have V vectors of a row of so many columns at a time. STRIPS says that there may be more
// than they hold: then a row of one's own is loaded as often as it is multiplied.
template <int L, int V, int E, class T>
struct own_row {
  static constexpr int width = L * V * E;
  const T* row;
  i64 columns;
  int l;
  pack<T, E> held[V];

  WL_DEVICE own_row(const T* row, i64 columns, int l) : row(row), columns(columns), l(l) {
    load(0);
  }
  WL_DEVICE void load(i64 first) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const i64 at = first + (v * L + l) * E;
      held[v] = columns > 0 ? load_part<0, T, E>(at < columns, row, at) : pack<T, E>{};
    }
  }
  // My lane's part of the product with another row.
  WL_DEVICE held_t<T> times(const T* other) {
    held_t<T> sum{};
    for (i64 first = 0; first < columns; first += width) {
      if (columns > width)
        load(first);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const i64 at = first + (v * L + l) * E;
        sum = dot_pack<T, E>(sum, held[v], load_part<0, T, E>(at < columns, other, at));
      }
    }
    return sum;
  }
};

// Sums of rows for a tile of columns.
template <int L, int V, int E, class T>
struct tile_sums {
  held_t<T> sums[V * E] = {};

  WL_DEVICE void add(held_t<T> factor, const T* row, i64 first, i64 columns) {
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (first + v * L * E < columns)
        add_pack<T, E>(sums + v * E, factor, load_pack<T, E>(row + first + v * L * E));
  }
  // Adds up what groups of lanes have, and stores it.
  WL_DEVICE void store(const item& it, T* row, i64 first, i64 columns) {
    for (int d = L; d < WL_WARP; d *= 2)
#pragma unroll
      for (int n = 0; n < V * E; ++n) {
        const held_t<T> other = shuffle_xor(it, sums[n], d);
        sums[n] += other;
      }
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (lane_of(it) < L && first + v * L * E < columns)
        store_pack<T, E>(row + first + v * L * E, sums + v * E, held_t<T>(1), held_t<T>(0));
  }
};

// Calls body(j, there, score, slope) for the rows j of [begin, end), those of a group of lanes one
// after the other: `score` is alpha <first, one_j>, `slope` <second, other_j>. All lanes take part
// in every call, those that have none left with a row that is not `there`.
template <int L, int VK, int VP, int E, class T, class Body>
WL_DEVICE void for_pairs(const item& it, i64 begin, i64 end, own_row<L, VK, E, T>& first,
                         own_row<L, VP, E, T>& second, const rows_of_batch<T>& one,
                         const rows_of_batch<T>& other, i64 b, held_t<T> alpha, const Body& body) {
  constexpr int side = WL_WARP / L;
  const int group = lane_of(it) / L;
#pragma unroll 1
  for (i64 at = begin; at < end; at += side) {
    const bool there = at + group < end;
    const i64 j = there ? at + group : end - 1;
    const held_t<T> score = alpha * sum_of_lanes<L>(it, first.times(one.row(b, j)));
    const held_t<T> slope = sum_of_lanes<L>(it, second.times(other.row(b, j)));
    body(j, there, score, slope);
  }
}

// What a score weighs, and what the weight's gradient makes of it.
template <int EDGE, class S>
WL_DEVICE void weigh_pair(S score, S slope, const row_facts<S>& facts, S& weight, S& gradient) {
  if constexpr (EDGE == SOFTMAX) {
    weight = exponential(score - facts.from) * facts.share;
    gradient = weight * (slope - facts.mean);
  } else if constexpr (EDGE == SIGMOID) {
    weight = sigmoid(score);
    gradient = slope * weight * (S(1) - weight);
  } else {
    weight = score;
    gradient = slope;
  }
}

// The facts of a row, in every lane.
template <int L, int VK, int VP, int E, class T>
WL_DEVICE row_facts<held_t<T>> facts_of_row(const item& it, i64 begin, i64 end,
                                            own_row<L, VK, E, T>& of_C, own_row<L, VP, E, T>& of_G,
                                            const rows_of_batch<T>& B, const rows_of_batch<T>& D,
                                            i64 b, held_t<T> alpha) {
  using S = held_t<T>;
  S largest = lowest<S>(), total{}, product{};
  for_pairs(it, begin, end, of_C, of_G, B, D, b, alpha, [&](i64, bool there, S score, S slope) {
    if (!there)
      return;
    if (score > largest) {
      const S factor = power_from(largest, score);
      total = total * factor;
      product = product * factor;
      largest = score;
    }
    const S power = power_from(score, largest);
    total += power;
    product += power * slope;
  });
  for (int d = L; d < WL_WARP; d *= 2) {
    const S its_largest = shuffle_xor(it, largest, d), its_total = shuffle_xor(it, total, d),
            its_product = shuffle_xor(it, product, d);
    const S most = its_largest > largest ? its_largest : largest;
    const S mine = power_from(largest, most), its = power_from(its_largest, most);
    total = total * mine + its_total * its;
    product = product * mine + its_product * its;
    largest = most;
  }
  const S share = S(1) / total;
  return {largest == lowest<S>() ? S(0) : largest, share, product * share};
}

// Leaves the facts of rows, and the gradient of C if it is asked for. A wave has a row, or a tile
// of the columns of it. Where `log_totals` is not null, `out` is the softmax's, and what is needed
// of a row takes no pass over its entries: the mean is <G_i, out_i> (Dao, 2023, algorithm 2).
template <int L, int VK, int VP, int E, int EDGE, class T, class I>
WL_DEVICE void mask_row_gradients(const item& it, i64 m, i64 k, i64 p, i64 batch, const I* first,
                                  const I* last, const T* C, i64 C_ld, i64 C_step, const T* B,
                                  i64 B_ld, i64 B_step, const T* D, i64 D_ld, i64 D_step,
                                  const T* G, i64 G_ld, i64 G_step, const T* out, i64 out_ld,
                                  i64 out_step, const held_t<T>* log_totals, i64 log_totals_step,
                                  u8* known, T* of_C, i64 of_C_ld, i64 of_C_step, held_t<T> alpha) {
  using S = held_t<T>;
  constexpr int waves = WL_BLOCK / WL_WARP, width = L * VK * E;
  const rows_of_batch<T> rows_C{C, C_ld, C_step}, rows_B{B, B_ld, B_step}, rows_D{D, D_ld, D_step},
      rows_G{G, G_ld, G_step};
  auto* const facts = reinterpret_cast<row_facts<S>*>(known);
  const i64 tiles = of_C && k > width ? (k + width - 1) / width : 1;
  const int l = lane_of(it) % L;
  for (i64 u = it.block() * waves + wave_of(it); u < m * tiles * batch; u += it.blocks() * waves) {
    const unit_of unit(u, m, tiles);
    const i64 begin = first[unit.i], end = last[unit.i];
    own_row<L, VK, E, T> own_C(rows_C.row(unit.b, unit.i), k, l);
    own_row<L, VP, E, T> own_G(rows_G.row(unit.b, unit.i), p, l);
    row_facts<S> mine{};
    if constexpr (EDGE == SOFTMAX) {
      if (begin < end && log_totals)
        mine = {log_totals[unit.b * log_totals_step + unit.i], S(1),
                sum_of_lanes<L>(it, own_G.times(out + unit.b * out_step + unit.i * out_ld))};
      else if (begin < end)
        mine = facts_of_row(it, begin, end, own_C, own_G, rows_B, rows_D, unit.b, alpha);
      if (unit.tile == 0 && lane_of(it) == 0)
        facts[unit.b * m + unit.i] = mine;
    }
    if (!of_C)
      continue;
    const i64 from = unit.tile * width + l * E;
    tile_sums<L, VK, E, T> sums;
    for_pairs(it, begin, end, own_C, own_G, rows_B, rows_D, unit.b, alpha,
              [&](i64 j, bool there, S score, S slope) {
                S weight, gradient;
                weigh_pair<EDGE>(score, slope, mine, weight, gradient);
                if (there)
                  sums.add(alpha * gradient, rows_B.row(unit.b, j), from, k);
              });
    sums.store(it, of_C + unit.b * of_C_step + unit.i * of_C_ld, from, k);
  }
}

// The gradients of B and D; a wave has a column of the pattern, which has the rows from `first` on
// and before `last`.
template <int L, int VK, int VP, int E, int EDGE, class T, class I>
WL_DEVICE void mask_column_gradients(const item& it, i64 m, i64 n, i64 k, i64 p, i64 batch,
                                     const I* first, const I* last, const T* C, i64 C_ld,
                                     i64 C_step, const T* B, i64 B_ld, i64 B_step, const T* D,
                                     i64 D_ld, i64 D_step, const T* G, i64 G_ld, i64 G_step,
                                     const u8* known, T* of_B, i64 of_B_ld, i64 of_B_step, T* of_D,
                                     i64 of_D_ld, i64 of_D_step, held_t<T> alpha) {
  using S = held_t<T>;
  constexpr int waves = WL_BLOCK / WL_WARP, width = L * VK * E, other_width = L * VP * E;
  const rows_of_batch<T> rows_C{C, C_ld, C_step}, rows_B{B, B_ld, B_step}, rows_D{D, D_ld, D_step},
      rows_G{G, G_ld, G_step};
  const auto* const facts = reinterpret_cast<const row_facts<S>*>(known);
  const i64 of_k = (k + width - 1) / width, of_p = (p + other_width - 1) / other_width;
  const i64 tiles = of_k > of_p ? of_k : of_p > 0 ? of_p : 1;
  const int l = lane_of(it) % L;
  for (i64 u = it.block() * waves + wave_of(it); u < n * tiles * batch; u += it.blocks() * waves) {
    const unit_of unit(u, n, tiles);
    own_row<L, VK, E, T> own_B(rows_B.row(unit.b, unit.i), k, l);
    own_row<L, VP, E, T> own_D(rows_D.row(unit.b, unit.i), p, l);
    const i64 from = unit.tile * width + l * E, other_from = unit.tile * other_width + l * E;
    tile_sums<L, VK, E, T> sums;
    tile_sums<L, VP, E, T> other_sums;
    for_pairs(it, first[unit.i], last[unit.i], own_B, own_D, rows_C, rows_G, unit.b, alpha,
              [&](i64 i, bool there, S score, S slope) {
                const row_facts<S> of_row =
                    EDGE == SOFTMAX ? facts[unit.b * m + i] : row_facts<S>{};
                S weight, gradient;
                weigh_pair<EDGE>(score, slope, of_row, weight, gradient);
                if (there && of_B)
                  sums.add(alpha * gradient, rows_C.row(unit.b, i), from, k);
                if (there && of_D)
                  other_sums.add(weight, rows_G.row(unit.b, i), other_from, p);
              });
    if (of_B)
      sums.store(it, of_B + unit.b * of_B_step + unit.i * of_B_ld, from, k);
    if (of_D)
      other_sums.store(it, of_D + unit.b * of_D_step + unit.i * of_D_ld, other_from, p);
  }
}

} // namespace wl
