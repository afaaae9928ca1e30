// Gradients of fusedmm by rows and by columns. The kernel by rows and the kernel by columns both
// recompute the weights of entries, so that no value is stored per entry (Dao, FlashAttention-2,
// 2023).
#pragma once
#include "simt/fusedmm.hpp"

namespace wl {

// Rows of a block of a dense operand. The distance of two rows fits the index type.
template <class T, class I>
struct rows_of_block {
  const T* data;
  I ld;
  WL_DEVICE const T* row(I i) const { return gathered_row(data, i, ld); }
};

// The rows of a block. Where entries have values, fusedmm_valued_gradients.hpp has another type.
template <class Rows>
WL_DEVICE const Rows& rows_of(const Rows& rows, i64) {
  return rows;
}

// Values of a softmax row that the kernel by columns reads: the logarithm of the sum of
// exponentials, and the mean of the gradients of weights.
template <class S>
struct row_facts {
  S log_total, mean;

  WL_DEVICE static row_facts load(const u8* known, i64 i) {
    // a plain load, which asked_before orders
    const auto read = reinterpret_cast<const pack<S, 2>*>(known)[i];
    return {read.at[0], read.at[1]};
  }
  WL_DEVICE void store(u8* known, i64 i) const {
    reinterpret_cast<pack<S, 2>*>(known)[i] = {{log_total, mean}};
  }
};

// L lanes hold V vectors of a row at a time. WHOLE: the row has exactly this length. A longer row
// is multiplied strip by strip.
template <int L, int V, int E, int WHOLE, class T>
struct own_row {
  static constexpr int width = L * V * E;
  const T* row;
  i64 columns;
  int l;
  pack<T, E> held[V] = {};

  WL_DEVICE own_row(const T* row, i64 columns, int l) : row(row), columns(columns), l(l) {
    load(held, row, 0);
  }
  WL_DEVICE bool strips() const { return !WHOLE && columns > width; }
  // Loads this lane's vectors of a strip. A row without columns has no memory.
  WL_DEVICE void load(pack<T, E> (&to)[V], const T* from, i64 first) const {
    if (WHOLE || columns > 0)
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const i64 at = first + (v * L + l) * E;
        to[v] = load_part<WHOLE, T, E>(at < columns, from, at);
      }
  }
  template <int A, class I>
  WL_DEVICE void load_all(pack<T, E> (&to)[A][V], const rows_of_block<T, I>& others,
                          const I (&j)[A], i64 first) const {
#pragma unroll
    for (int a = 0; a < A; ++a)
      load(to[a], others.row(j[a]), first);
  }
  // Adds this lane's parts of the dot products with rows; the first strips of the rows are loaded
  // already.
  template <int A, class I>
  WL_DEVICE void multiply(held_t<T> (&sums)[A], pack<T, E> (&loaded)[A][V],
                          const rows_of_block<T, I>& others, const I (&j)[A]) {
    for (i64 first = 0;;) {
#pragma unroll
      for (int a = 0; a < A; ++a) // a sum of sums: a long row has too many terms for one sum
        sums[a] += dot_of_packs(held_t<T>{}, held, loaded[a]);
      first += width;
      if (WHOLE || first >= columns)
        break;
      load(held, row, first);
      load_all(loaded, others, j, first);
    }
    if (strips())
      load(held, row, 0);
  }
};

// Sums of rows for a tile of columns.
template <int L, int V, int E, class T>
struct tile_sums {
  held_t<T> sums[V * E] = {};

  WL_DEVICE void add(held_t<T> factor, const pack<T, E> (&row)[V]) {
#pragma unroll
    for (int v = 0; v < V; ++v)
      add_pack<T, E>(sums + v * E, factor, row[v]);
  }
  // Adds up the parts of the groups of lanes, and stores the sum.
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

// A entries of a group of lanes, and the rows of dense operands that the entries select. A lane
// holds the numbers of one entry: score = alpha <first, one_j>, slope = <second, other_j>. Where
// entries have values, `score` is `sample` times the value of the entry at `place`.
template <int VK, int VP, int E, int A, class T, class I>
struct some_entries {
  I j[A];
  bool there[A]; // absent entries repeat the last one
  pack<T, E> one[A][VK] = {}, other[A][VP] = {};
  bool mine_there;
  row_facts<held_t<T>> facts;
  held_t<T> score, slope;
  I place;
  held_t<T> value, sample;
};

// Calls body(entries) for the entries of [begin, end), A of each group of lanes at a time. The
// loads of `facts_of(j)` and of all rows are issued before the first product waits for a row.
template <int L, int VK, int VP, int E, int A, int WHOLE, class T, class I, class Rows, class Facts,
          class Body>
WL_DEVICE void for_entries(const item& it, const Rows& rows, I begin, I end,
                           own_row<L, VK, E, WHOLE, T>& first, own_row<L, VP, E, WHOLE, T>& second,
                           const rows_of_block<T, I>& one, const rows_of_block<T, I>& other,
                           held_t<T> alpha, const Facts& facts_of, const Body& body) {
  constexpr int side = WL_WARP / L;
  const int group = lane_of(it) / L, mine = lane_of(it) % L % A;
  const auto my_entry = [&](I at) {
    const I left = end - at;
    const int place = mine * side + group;
    return at + (I(place) < left ? I(place) : left - 1);
  };
  I next{}, next_place{};
  const auto ask = [&](I at) { // loads the operands of the entries at `at`
    next = rows.column(my_entry(at));
    if constexpr (Rows::VALUED)
      next_place = rows.place(my_entry(at));
  };
  if (begin < end)
    ask(begin);
#pragma unroll 1
  for (I at = begin; at < end;) {
    const I left = end - at, j = next;
    some_entries<VK, VP, E, A, T, I> found;
#pragma unroll
    for (int a = 0; a < A; ++a) {
      found.j[a] = shuffle(j, group * L + a);
      found.there[a] = I(a * side + group) < left;
    }
    found.mine_there = I(mine * side + group) < left;
    first.load_all(found.one, one, found.j, 0);
    second.load_all(found.other, other, found.j, 0);
    found.facts = facts_of(j);
    if constexpr (Rows::VALUED) {
      found.place = next_place;
      found.value = rows.value(next_place);
    }
    at = left > I(A * side) ? at + I(A * side) : end;
    if (at < end)
      ask(at);
    asked_before();
    held_t<T> scores[A] = {}, slopes[A] = {};
    first.multiply(scores, found.one, one, found.j);
    second.multiply(slopes, found.other, other, found.j);
    found.score = alpha * reduce_scatter<L>(it, scores);
    found.slope = reduce_scatter<L>(it, slopes);
    if constexpr (Rows::VALUED) {
      found.sample = found.score;
      found.score = found.sample * found.value;
    }
    body(found);
  }
}

// The weight of a score, and the gradient of the score from the gradient of the weight.
template <int EDGE, class S>
WL_DEVICE void weigh_entry(S score, S slope, const row_facts<S>& facts, S& weight, S& gradient) {
  if constexpr (EDGE == SOFTMAX) {
    weight = exponential(score - facts.log_total);
    gradient = weight * (slope - facts.mean);
  } else if constexpr (EDGE == SIGMOID) {
    weight = sigmoid(score);
    gradient = slope * weight * (S(1) - weight);
  } else {
    weight = score;
    gradient = slope;
  }
}

// The facts of a row with entries, returned to every lane.
template <int L, int VK, int VP, int E, int A, int WHOLE, class T, class I, class Rows>
WL_DEVICE row_facts<held_t<T>>
facts_of_row(const item& it, const Rows& rows, I begin, I end, own_row<L, VK, E, WHOLE, T>& of_C,
             own_row<L, VP, E, WHOLE, T>& of_G, const rows_of_block<T, I>& B,
             const rows_of_block<T, I>& D, held_t<T> alpha) {
  using S = held_t<T>;
  using entries = some_entries<VK, VP, E, A, T, I>;
  S largest = lowest<S>();
  long_sum<S> totals{}, products{}; // rows of masks are not cut into pieces
  const auto nothing = [](I) { return row_facts<S>{}; };
  for_entries<L, VK, VP, E, A, WHOLE, T, I>(it, rows, begin, end, of_C, of_G, B, D, alpha, nothing,
                                            [&](entries& found) {
                                              if (!found.mine_there)
                                                return;
                                              if (found.score > largest + S(RISE_OF_LARGEST)) {
                                                const S factor = power_from(largest, found.score);
                                                totals.scale(factor);
                                                products.scale(factor);
                                                largest = found.score;
                                              }
                                              const S power = power_from(found.score, largest);
                                              totals.add(power);
                                              products.add(power * found.slope);
                                            });
  S total = totals.value(), product = products.value();
  for (int d = 1; d < WL_WARP; d *= 2) {
    if (d >= A && d < L)
      continue; // these lanes have the same entries
    const S its_largest = shuffle_xor(it, largest, d), its_total = shuffle_xor(it, total, d),
            its_product = shuffle_xor(it, product, d);
    const S most = its_largest > largest ? its_largest : largest;
    const S mine = power_from(largest, most), its = power_from(its_largest, most);
    total = total * mine + its_total * its;
    product = product * mine + its_product * its;
    largest = most;
  }
  return {log_of_total(largest, total), product * share_of_total(total)};
}

// Stores the values of rows, and the requested gradients of C and of values. Each wave processes
// one row, or one tile of its columns. KNOWN: `out` and `log_totals` are results of the softmax;
// the values of rows then need no pass over the entries, because the mean is <G_i, out_i> (Dao,
// 2023, algorithm 2).
template <int L, int VK, int VP, int E, int A, int EDGE, int KNOWN, int WHOLE, class T, class I,
          class Rows>
WL_DEVICE void row_gradients(const item& it, const Rows& rows, i64 m, i64 k, i64 p, i64 batch,
                             const T* C, i64 C_ld, i64 C_step, const T* B, i64 B_ld, i64 B_step,
                             const T* D, i64 D_ld, i64 D_step, const T* G, i64 G_ld, i64 G_step,
                             const T* out, i64 out_ld, i64 out_step, const held_t<T>* log_totals,
                             i64 log_totals_step, u8* known, T* of_C, i64 of_C_ld, i64 of_C_step,
                             held_t<T> alpha) {
  using S = held_t<T>;
  using entries = some_entries<VK, VP, E, A, T, I>;
  constexpr int waves = WL_BLOCK / WL_WARP, width = L * VK * E;
  const i64 tiles = of_C && k > width ? (k + width - 1) / width : 1;
  const int l = lane_of(it) % L, group = lane_of(it) / L;
  for (i64 u = it.block() * waves + wave_of(it); u < m * tiles * batch; u += it.blocks() * waves) {
    const unit_of unit(u, m, tiles);
    const auto of_block = rows_of(rows, unit.b);
    const I begin = rows.begin(unit.i), end = rows.end(unit.i);
    const rows_of_block<T, I> of_B{B + unit.b * B_step, I(B_ld)},
        of_D{D + unit.b * D_step, I(D_ld)};
    own_row<L, VK, E, WHOLE, T> own_C(C + unit.b * C_step + unit.i * C_ld, k, l);
    own_row<L, VP, E, WHOLE, T> own_G(G + unit.b * G_step + unit.i * G_ld, p, l);
    row_facts<S> facts{};
    if constexpr (EDGE == SOFTMAX) {
      if constexpr (KNOWN) {
        const rows_of_block<T, I> made{out + unit.b * out_step + unit.i * out_ld, I(0)};
        const I here[1] = {I(0)};
        pack<T, E> loaded[1][VP] = {};
        S mean[1] = {};
        own_G.load_all(loaded, made, here, 0);
        own_G.multiply(mean, loaded, made, here);
        facts = {log_totals[unit.b * log_totals_step + unit.i], sum_of_lanes<L>(it, mean[0])};
      } else if (begin < end) {
        facts = facts_of_row<L, VK, VP, E, A, WHOLE, T, I>(it, of_block, begin, end, own_C, own_G,
                                                           of_B, of_D, alpha);
      }
      if (unit.tile == 0 && lane_of(it) == 0)
        facts.store(known, unit.b * m + unit.i);
    }
    bool asked = of_C != nullptr;
    if constexpr (Rows::VALUED)
      asked = asked || of_block.of_values != nullptr;
    if (!asked)
      continue;
    tile_sums<L, VK, E, T> sums;
    for_entries<L, VK, VP, E, A, WHOLE, T, I>(
        it, of_block, begin, end, own_C, own_G, of_B, of_D, alpha, [&](I) { return facts; },
        [&](entries& found) {
          S weight, gradient;
          weigh_entry<EDGE>(found.score, found.slope, found.facts, weight, gradient);
          if constexpr (Rows::VALUED) {
            if (of_block.of_values && unit.tile == 0 && l < A && found.mine_there)
              store_narrowed(of_block.of_values[found.place], gradient * found.sample, S(1), S(0));
            if (!of_C)
              return;
            gradient = gradient * found.value;
          }
          const S factor = alpha * gradient;
          if (own_C.strips())
            own_C.load_all(found.one, of_B, found.j, unit.tile * width);
#pragma unroll
          for (int a = 0; a < A; ++a) {
            const S of_a = shuffle(factor, group * L + a);
            if (found.there[a])
              sums.add(of_a, found.one[a]);
          }
        });
    if (of_C)
      sums.store(it, of_C + unit.b * of_C_step + unit.i * of_C_ld, unit.tile * width + l * E, k);
  }
}

// The gradients of B and D. `rows` are the rows of the transposed pattern; each wave processes one
// row, or one tile of its columns.
template <int L, int VK, int VP, int E, int A, int EDGE, int WHOLE, class T, class I, class Rows>
WL_DEVICE void column_gradients(const item& it, const Rows& rows, i64 m, i64 n, i64 k, i64 p,
                                i64 batch, const T* C, i64 C_ld, i64 C_step, const T* B, i64 B_ld,
                                i64 B_step, const T* D, i64 D_ld, i64 D_step, const T* G, i64 G_ld,
                                i64 G_step, const u8* known, T* of_B, i64 of_B_ld, i64 of_B_step,
                                T* of_D, i64 of_D_ld, i64 of_D_step, held_t<T> alpha) {
  using S = held_t<T>;
  using entries = some_entries<VK, VP, E, A, T, I>;
  constexpr int waves = WL_BLOCK / WL_WARP, width = L * VK * E, other_width = L * VP * E;
  const i64 of_k = (k + width - 1) / width, of_p = (p + other_width - 1) / other_width;
  const i64 tiles = WHOLE ? 1 : of_k > of_p ? of_k : of_p > 0 ? of_p : 1;
  const int l = lane_of(it) % L, group = lane_of(it) / L;
  for (i64 u = it.block() * waves + wave_of(it); u < n * tiles * batch; u += it.blocks() * waves) {
    const unit_of unit(u, n, tiles);
    const rows_of_block<T, I> of_C{C + unit.b * C_step, I(C_ld)},
        of_G{G + unit.b * G_step, I(G_ld)};
    own_row<L, VK, E, WHOLE, T> own_B(B + unit.b * B_step + unit.i * B_ld, k, l);
    own_row<L, VP, E, WHOLE, T> own_D(D + unit.b * D_step + unit.i * D_ld, p, l);
    const i64 from = unit.tile * width, other_from = unit.tile * other_width;
    const auto facts_of = [&](I i) {
      if constexpr (EDGE == SOFTMAX)
        return row_facts<S>::load(known, unit.b * m + i);
      else
        return row_facts<S>{};
    };
    tile_sums<L, VK, E, T> sums;
    tile_sums<L, VP, E, T> other_sums;
    for_entries<L, VK, VP, E, A, WHOLE, T, I>(
        it, rows_of(rows, unit.b), rows.begin(unit.i), rows.end(unit.i), own_B, own_D, of_C, of_G,
        alpha, facts_of, [&](entries& found) {
          S weight, gradient;
          weigh_entry<EDGE>(found.score, found.slope, found.facts, weight, gradient);
          if constexpr (Rows::VALUED)
            gradient = gradient * found.value;
          const S factor = alpha * gradient;
          if (own_B.strips())
            own_B.load_all(found.one, of_C, found.j, from);
          if (own_D.strips())
            own_D.load_all(found.other, of_G, found.j, other_from);
#pragma unroll
          for (int a = 0; a < A; ++a) {
            const S of_a = shuffle(factor, group * L + a),
                    weight_of_a = shuffle(weight, group * L + a);
            if (found.there[a] && of_B)
              sums.add(of_a, found.one[a]);
            if (found.there[a] && of_D)
              other_sums.add(weight_of_a, found.other[a]);
          }
        });
    if (of_B)
      sums.store(it, of_B + unit.b * of_B_step + unit.i * of_B_ld, from + l * E, k);
    if (of_D)
      other_sums.store(it, of_D + unit.b * of_D_step + unit.i * of_D_ld, other_from + l * E, p);
  }
}

// The kernels for listed columns and for intervals of columns. After the arguments that describe
// the pattern they take the arguments of the functions above.
template <int L, int VK, int VP, int E, int A, int EDGE, int KNOWN, int WHOLE, class T, class I,
          class... Rest>
WL_DEVICE void csr_row_gradients(const item& it, i64 m, i64 k, i64 p, i64 batch, const I* indptr,
                                 const I* indices, Rest... rest) {
  row_gradients<L, VK, VP, E, A, EDGE, KNOWN, WHOLE, T, I>(
      it, listed_rows<I>{indptr, nullptr, indices}, m, k, p, batch, rest...);
}

template <int L, int VK, int VP, int E, int A, int EDGE, int KNOWN, int WHOLE, class T, class I,
          class... Rest>
WL_DEVICE void mask_row_gradients(const item& it, i64 m, i64 k, i64 p, i64 batch, const I* first,
                                  const I* last, Rest... rest) {
  row_gradients<L, VK, VP, E, A, EDGE, KNOWN, WHOLE, T, I>(it, interval_rows<I>{first, last}, m, k,
                                                           p, batch, rest...);
}

template <int L, int VK, int VP, int E, int A, int EDGE, int WHOLE, class T, class I, class... Rest>
WL_DEVICE void csr_column_gradients(const item& it, i64 m, i64 n, i64 k, i64 p, i64 batch,
                                    const I* indptr, const I* indices, Rest... rest) {
  column_gradients<L, VK, VP, E, A, EDGE, WHOLE, T, I>(it, listed_rows<I>{indptr, nullptr, indices},
                                                       m, n, k, p, batch, rest...);
}

template <int L, int VK, int VP, int E, int A, int EDGE, int WHOLE, class T, class I, class... Rest>
WL_DEVICE void mask_column_gradients(const item& it, i64 m, i64 n, i64 k, i64 p, i64 batch,
                                     const I* first, const I* last, Rest... rest) {
  column_gradients<L, VK, VP, E, A, EDGE, WHOLE, T, I>(it, interval_rows<I>{first, last}, m, n, k,
                                                       p, batch, rest...);
}

} // namespace wl
