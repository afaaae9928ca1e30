// E_i = sum_j f(alpha <C_i, B_j> A_ij) D_j in one pass: samples stay in registers.
#pragma once
#include "simt/dots.hpp"
#include "unified/edge_inputs.hpp"
#include "unified/long_sums.hpp"

namespace wl {

// The functions between the two products, as constants of templates.
enum edge_function { IDENTITY = 0, SIGMOID = 1, SOFTMAX = 2 };

template <class S>
WL_DEVICE S sigmoid(S s) {
  const S small = exponential(s < S(0) ? s : -s);
  return (s < S(0) ? small : S(1)) / (S(1) + small);
}

template <class S>
WL_DEVICE S lowest() {
  return S(float_of(0xff800000u)); // minus infinity
}

// The score that the powers of a softmax are relative to. The largest score of an empty row would
// give NaN.
template <class S>
WL_DEVICE S power_from(S s, S largest) {
  return exponential(s - (largest == lowest<S>() ? S(0) : largest));
}

// The factor that turns the powers of a row into weights: 0 for a row without weight.
template <class S>
WL_DEVICE S share_of_total(S total) {
  return total == S(0) ? S(0) : S(1) / total;
}

// The logarithm of a sum of powers. For a row without weight it is plus infinity: the exponentials
// of all scores minus it are then 0, like the weights (FlashAttention-2 of Dao 2023).
template <class S>
WL_DEVICE S log_of_total(S largest, S total) {
  return total == S(0) ? S(float_of(0x7f800000u)) : largest + logarithm(total);
}

// A score that exceeds the largest one by less than this does not rescale the sums: see
// omp/fusedmm.hpp.
constexpr float RISE_OF_LARGEST = 1;

// Sums of weighted rows, relative to exp(largest) for softmax.
template <int EDGE, int N, class S>
struct weighted {
  S sums[N] = {};
  S largest = lowest<S>(), powers{};

  // Makes the sums relative to a larger score.
  WL_DEVICE void rescale(S to) {
    if constexpr (EDGE == SOFTMAX) {
      const S factor = power_from(largest, to);
#pragma unroll
      for (int n = 0; n < N; ++n)
        sums[n] = sums[n] * factor;
      powers = powers * factor;
      largest = to;
    }
  }

  WL_DEVICE S log_total() const { return log_of_total(largest, powers); }

  // Takes the score of an entry of this lane and returns its weight, 0 for an absent entry. A
  // lanes, with numbers that differ in the bits of A - 1, share the sums.
  template <int A>
  WL_DEVICE S weigh(const item& it, S s, bool there) {
    if constexpr (EDGE == SOFTMAX) {
      S most = there ? s : lowest<S>();
#pragma unroll
      for (int d = 1; d < A; d *= 2) {
        const S other = shuffle_xor(it, most, d);
        most = other > most ? other : most;
      }
      if (most > largest + S(RISE_OF_LARGEST))
        rescale(most);
      s = power_from(s, largest);
    } else if constexpr (EDGE == SIGMOID) {
      s = sigmoid(s);
    }
    s = there ? s : S(0);
    powers += s;
    return s;
  }
};

// The entries of rows: a list of pieces of rows and of their columns.
template <class I>
struct listed_rows {
  static constexpr bool CUT = true, VALUED = false;
  const I *bounds, *target, *indices;

  WL_DEVICE I begin(i64 i) const { return bounds[i]; }
  WL_DEVICE I end(i64 i) const { return bounds[i + 1]; }
  // A piece of a cut row has a negative target; the rows of the pieces follow the list.
  WL_DEVICE I goes_to(i64 i) const { return target ? target[i] : I(i); }
  WL_DEVICE I row_of(i64 items, I goes_to) const { return target[items - 1 - goes_to]; }
  WL_DEVICE I column(I e) const { return read_once(indices + e); }
};

// Rows that contain all columns of an interval: entry e is in column e.
template <class I>
struct interval_rows {
  static constexpr bool CUT = false, VALUED = false;
  const I *first, *last;

  WL_DEVICE I begin(i64 i) const { return first[i]; }
  WL_DEVICE I end(i64 i) const { return last[i]; }
  WL_DEVICE I goes_to(i64 i) const { return I(i); }
  WL_DEVICE I row_of(i64, I goes_to) const { return goes_to; }
  WL_DEVICE I column(I e) const { return e; }
};

// L lanes hold VK vectors of rows of C and B and VP vectors of rows of D. Each group loads the
// operands of A entries before it uses them. Entries of a list are stored as in csr_spmm. D_IS_B: D
// is B and fits one tile, so that its rows are loaded once. WHOLE: k is exactly as long as the
// lanes hold, and p is a multiple of the columns that they hold. A line of `partial` holds the
// largest score, the sum of powers, and p sums. The logarithms of the totals of a softmax are
// stored if `log_totals` is not null.
template <int L, int VK, int VP, int E, int A, int EDGE, int D_IS_B, int WHOLE, class T, class I,
          class Rows, class Function>
WL_DEVICE void
fuse_rows(const item& it, const Rows& rows, const Function& function, i64 items, i64 k, i64 p,
          i64 batch, const T* values, i64 values_step, const T* C, i64 C_ld, i64 C_step, const T* B,
          i64 B_ld, i64 B_step, const T* D, i64 D_ld, i64 D_step, T* out, i64 out_ld, i64 out_step,
          held_t<T>* log_totals, i64 log_totals_step, held_t<T> alpha, i64 lines, u8* partial) {
  using S = held_t<T>;
  constexpr int waves = WL_BLOCK / WL_WARP, ahead = L < A ? L : A;
  constexpr int width = L * VK * E, tile_width = L * VP * E;
  constexpr bool in_strips = has_strips<L, VK, WHOLE>;
  // without columns the operands may have no memory
  const i64 strips = in_strips ? (k + width - 1) / width : WHOLE || k > 0;
  const i64 tiles = WHOLE == ALONE || p == 0 ? 1 : (p + tile_width - 1) / tile_width;
  const i64 units = WHOLE == ALONE ? items : items * tiles * batch;
  const I C_row = WHOLE == ALONE ? I(width) : I(C_ld), B_row = WHOLE == ALONE ? I(width) : I(B_ld);
  const I D_row = WHOLE == ALONE ? I(tile_width) : I(D_ld);
  const batch_of<L, I> me(it);
  for (i64 u = it.block() * waves + wave_of(it); u < units; u += it.blocks() * waves) {
    const unit_of unit(u, WHOLE == ALONE ? u + 1 : items, tiles);
    const I begin = rows.begin(unit.i), end = rows.end(unit.i);
    const I goes_to = rows.goes_to(unit.i);
    const bool cut = Rows::CUT && goes_to < 0;
    const I of_row = cut ? rows.row_of(items, goes_to) : goes_to;
    const T* const of_C = gathered_row(C + unit.b * C_step, of_row, C_row);
    const T* const of_B = B + unit.b * B_step;
    const i64 c0 = unit.tile * tile_width + me.l * E;
    const T* const of_D = D + unit.b * D_step;
    weighted<EDGE, VP * E, S> total;
    int count = me.count(begin, end);
    if (count > 0) {
      const T* const of_values = values ? values + unit.b * values_step : values;
      I q = begin, column{}, entry{};
      S value = S(1);
      const auto ask = [&] { // loads the operands of the batch at q
        if (count > 0) {
          const I e = me.own(q, count);
          column = rows.column(e);
          if constexpr (Function::TRACED)
            entry = e;
          if (values)
            value = widen(read_once(of_values + e));
        }
      };
      ask();
      pack<T, E> mine[VK] = {};
      if (strips == 1)
#pragma unroll
        for (int v = 0; v < VK; ++v) {
          const int at = (v * L + me.l) * E;
          mine[v] = load_part<WHOLE, T, E>(at < k, of_C, at);
        }
      while (count > 0) {
        const I of_now = column, entry_now = entry;
        const S factor = alpha * value;
        const int here = count;
        q += I(here);
        count = me.count(q, end);
        ask(); // issues the next loads while the rows of this batch arrive
#pragma unroll 1
        for (int s = 0; s * me.side < here; s += ahead) {
          dot_of_strips<in_strips, S> parts[ahead];
          I of_j[ahead];
          pack<T, E> row[ahead][VK], summed[ahead][VP] = {};
#pragma unroll
          for (int a = 0; a < ahead; ++a)
            of_j[a] = shuffle(of_now, me.lane_with(s + a));
          for (i64 strip = 0; strip < strips; ++strip) {
            const i64 first = strip * width + me.l * E;
            if (strips > 1)
#pragma unroll
              for (int v = 0; v < VK; ++v)
                mine[v] = load_part<WHOLE, T, E>(first + v * L * E < k, of_C, first + v * L * E);
#pragma unroll
            for (int a = 0; a < ahead; ++a)
#pragma unroll
              for (int v = 0; v < VK; ++v)
                row[a][v] = load_part<WHOLE, T, E>(
                    first + v * L * E < k, gathered_row(of_B, of_j[a], B_row), first + v * L * E);
#pragma unroll
            for (int a = 0; a < ahead; ++a)
              parts[a].add(mine, row[a]);
          }
          S dots[ahead];
#pragma unroll
          for (int a = 0; a < ahead; ++a)
            dots[a] = parts[a].value();
          if constexpr (!D_IS_B) // loaded before the sums over lanes wait
            if (WHOLE || p > 0)  // rows without columns have no memory
#pragma unroll
              for (int a = 0; a < ahead; ++a)
#pragma unroll
                for (int v = 0; v < VP; ++v)
                  summed[a][v] = load_part<WHOLE, T, E>(
                      c0 + v * L * E < p, gathered_row(of_D, of_j[a], D_row), c0 + v * L * E);
          const int number = s + me.l % ahead;
          S score = reduce_scatter<L>(it, dots) * shuffle(factor, me.lane_with(number));
          if constexpr (Function::TRACED) {
            const I j = shuffle(of_now, me.lane_with(number)),
                    e = shuffle(entry_now, me.lane_with(number));
            score = function(score, unit.b, of_row, j, e);
          }
          const S weight = total.template weigh<ahead>(it, score, me.place(number) < here);
#pragma unroll
          for (int a = 0; a < ahead; ++a) {
            const S of_a = shuffle(weight, me.lane_with(a));
            // Lanes beyond the last entry loaded rows of the last entry, which may hold Inf and
            // NaN.
            const bool there = me.place(s + a) < here;
#pragma unroll
            for (int v = 0; v < VP; ++v)
              if (there) {
                if constexpr (D_IS_B)
                  add_pack<T, E>(total.sums + v * E, of_a, row[a][v < VK ? v : 0]);
                else
                  add_pack<T, E>(total.sums + v * E, of_a, summed[a][v]);
              }
          }
        }
      }
    }
#pragma unroll
    for (int d = 1; d < ahead; d *= 2) {
      const S other = shuffle_xor(it, total.powers, d);
      total.powers += other;
    }
    if constexpr (EDGE == SOFTMAX) {
      S largest = total.largest;
      for (int d = L; d < WL_WARP; d *= 2) {
        const S other = shuffle_xor(it, largest, d);
        largest = other > largest ? other : largest;
      }
      total.rescale(largest);
    }
    for (int d = L; d < WL_WARP; d *= 2) {
#pragma unroll
      for (int n = 0; n < VP * E; ++n) {
        const S other = shuffle_xor(it, total.sums[n], d);
        total.sums[n] += other;
      }
      const S other = shuffle_xor(it, total.powers, d);
      total.powers += other;
    }
    // A row without entries is zero for every f.
    const S share = EDGE == SOFTMAX && !cut ? share_of_total(total.powers) : S(1);
    S* const line =
        reinterpret_cast<S*>(partial) + (unit.b * lines - 1 - goes_to) * (p + 2); // if negative
    if (unit.tile == 0 && lane_of(it) == 0) {
      if (cut) {
        line[0] = total.largest;
        line[1] = total.powers;
      } else if (EDGE == SOFTMAX && log_totals) {
        log_totals[unit.b * log_totals_step + of_row] = total.log_total();
      }
    }
#pragma unroll
    for (int v = 0; v < VP; ++v) {
      const i64 c = c0 + v * L * E;
      if (me.group != 0 || c >= p)
        continue;
      if (cut)
        for (int e = 0; e < E; ++e)
          line[2 + c + e] = total.sums[v * E + e];
      else
        store_pack<T, E>(out + unit.b * out_step + of_row * out_ld + c, total.sums + v * E, share,
                         S(0));
    }
  }
}

template <int L, int VK, int VP, int E, int A, int EDGE, int D_IS_B, int WHOLE, class T, class I>
WL_DEVICE void csr_fusedmm(const item& it, i64 items, i64 k, i64 p, i64 batch, const I* bounds,
                           const I* target, const I* indices, const T* values, i64 values_step,
                           const T* C, i64 C_ld, i64 C_step, const T* B, i64 B_ld, i64 B_step,
                           const T* D, i64 D_ld, i64 D_step, T* out, i64 out_ld, i64 out_step,
                           held_t<T>* log_totals, i64 log_totals_step, held_t<T> alpha, i64 lines,
                           u8* partial) {
  fuse_rows<L, VK, VP, E, A, EDGE, D_IS_B, WHOLE, T, I>(
      it, listed_rows<I>{bounds, target, indices}, scores_alone{}, items, k, p, batch, values,
      values_step, C, C_ld, C_step, B, B_ld, B_step, D, D_ld, D_step, out, out_ld, out_step,
      log_totals, log_totals_step, alpha, lines, partial);
}

template <int L, int VK, int VP, int E, int A, int EDGE, int D_IS_B, int WHOLE, class T, class I>
WL_DEVICE void mask_fusedmm(const item& it, i64 m, i64 k, i64 p, i64 batch, const I* first,
                            const I* last, const T* C, i64 C_ld, i64 C_step, const T* B, i64 B_ld,
                            i64 B_step, const T* D, i64 D_ld, i64 D_step, T* out, i64 out_ld,
                            i64 out_step, held_t<T>* log_totals, i64 log_totals_step,
                            held_t<T> alpha) {
  fuse_rows<L, VK, VP, E, A, EDGE, D_IS_B, WHOLE, T, I>(
      it, interval_rows<I>{first, last}, scores_alone{}, m, k, p, batch,
      static_cast<const T*>(nullptr), 0, C, C_ld, C_step, B, B_ld, B_step, D, D_ld, D_step, out,
      out_ld, out_step, log_totals, log_totals_step, alpha, 0, static_cast<u8*>(nullptr));
}

// The same with a function of the user between the scores and the edge function.
template <int L, int VK, int VP, int E, int A, int EDGE, int D_IS_B, int WHOLE, class PROGRAM,
          class T, class I>
WL_DEVICE void
csr_fusedmm_traced(const item& it, i64 items, i64 k, i64 p, i64 batch, const I* bounds,
                   const I* target, const I* indices, const T* values, i64 values_step, const T* C,
                   i64 C_ld, i64 C_step, const T* B, i64 B_ld, i64 B_step, const T* D, i64 D_ld,
                   i64 D_step, const held_t<T>* of_rows, i64 of_rows_ld, i64 of_rows_step,
                   const held_t<T>* of_columns, i64 of_columns_ld, i64 of_columns_step,
                   const held_t<T>* of_entries, i64 of_entries_ld, i64 of_entries_step, T* out,
                   i64 out_ld, i64 out_step, held_t<T>* log_totals, i64 log_totals_step,
                   held_t<T> alpha, i64 lines, u8* partial) {
  using S = held_t<T>;
  const traced_scores<PROGRAM, S> function{{{of_rows, of_rows_ld, of_rows_step},
                                            {of_columns, of_columns_ld, of_columns_step},
                                            {of_entries, of_entries_ld, of_entries_step}}};
  fuse_rows<L, VK, VP, E, A, EDGE, D_IS_B, WHOLE, T, I>(
      it, listed_rows<I>{bounds, target, indices}, function, items, k, p, batch, values,
      values_step, C, C_ld, C_step, B, B_ld, B_step, D, D_ld, D_step, out, out_ld, out_step,
      log_totals, log_totals_step, alpha, lines, partial);
}

template <int L, int VK, int VP, int E, int A, int EDGE, int D_IS_B, int WHOLE, class PROGRAM,
          class T, class I>
WL_DEVICE void mask_fusedmm_traced(const item& it, i64 m, i64 k, i64 p, i64 batch, const I* first,
                                   const I* last, const T* C, i64 C_ld, i64 C_step, const T* B,
                                   i64 B_ld, i64 B_step, const T* D, i64 D_ld, i64 D_step,
                                   const held_t<T>* of_rows, i64 of_rows_ld, i64 of_rows_step,
                                   const held_t<T>* of_columns, i64 of_columns_ld,
                                   i64 of_columns_step, T* out, i64 out_ld, i64 out_step,
                                   held_t<T>* log_totals, i64 log_totals_step, held_t<T> alpha) {
  using S = held_t<T>;
  const traced_scores<PROGRAM, S> function{{{of_rows, of_rows_ld, of_rows_step},
                                            {of_columns, of_columns_ld, of_columns_step},
                                            {nullptr, 0, 0}}};
  fuse_rows<L, VK, VP, E, A, EDGE, D_IS_B, WHOLE, T, I>(
      it, interval_rows<I>{first, last}, function, m, k, p, batch, static_cast<const T*>(nullptr),
      0, C, C_ld, C_step, B, B_ld, B_step, D, D_ld, D_step, out, out_ld, out_step, log_totals,
      log_totals_step, alpha, 0, static_cast<u8*>(nullptr));
}

// The outputs of PROGRAM for stored scores: a wave processes a row.
template <class PROGRAM, class T, class I>
WL_DEVICE void
csr_edge_function(const item& it, i64 m, i64 batch, const I* indptr, const I* indices,
                  const T* scores, i64 scores_step, const held_t<T>* of_rows, i64 of_rows_ld,
                  i64 of_rows_step, const held_t<T>* of_columns, i64 of_columns_ld,
                  i64 of_columns_step, const held_t<T>* of_entries, i64 of_entries_ld,
                  i64 of_entries_step, T* results, i64 results_ld, i64 results_step) {
  using S = held_t<T>;
  constexpr int waves = WL_BLOCK / WL_WARP;
  const edge_inputs<S> inputs{{of_rows, of_rows_ld, of_rows_step},
                              {of_columns, of_columns_ld, of_columns_step},
                              {of_entries, of_entries_ld, of_entries_step}};
  for (i64 u = it.block() * waves + wave_of(it); u < m * batch; u += it.blocks() * waves) {
    const i64 b = u / m, row = u % m;
    for (i64 e = indptr[row] + lane_of(it); e < indptr[row + 1]; e += WL_WARP) {
      S made[PROGRAM::OUTPUTS];
      PROGRAM::run_all(S(widen(scores[b * scores_step + e])), b, row, indices[e], e, inputs, made);
#pragma unroll
      for (int output = 0; output < PROGRAM::OUTPUTS; ++output)
        results[b * results_step + output * results_ld + e] = narrowed<T>::of(made[output]);
    }
  }
}

// Adds up the pieces of cut rows in their order, as spmm_join does.
template <int EDGE, class T, class I>
WL_DEVICE void fusedmm_join(const item& it, i64 cuts, i64 p, i64 batch, const I* rows,
                            const I* first, i64 lines, const u8* partial, T* out, i64 out_ld,
                            i64 out_step, held_t<T>* log_totals, i64 log_totals_step) {
  using S = held_t<T>;
  const i64 columns = p > 0 ? p : 1; // a row without columns still has a logarithm
  const i64 step = it.blocks() * WL_BLOCK, work = cuts * columns * batch;
  for (i64 w = it.block() * WL_BLOCK + it.thread(); w < work; w += step) {
    const i64 c = w % columns, i = w / columns % cuts, b = w / columns / cuts;
    const S* const of_block = reinterpret_cast<const S*>(partial) + b * lines * (p + 2);
    weighted<EDGE, 1, S> total;
    if constexpr (EDGE == SOFTMAX)
      for (I at = first[i]; at < first[i + 1]; ++at) {
        const S its = of_block[at * (p + 2)];
        total.largest = its > total.largest ? its : total.largest;
      }
    long_sum<S> sum{}, powers{}; // a piece has few entries, a row many pieces
    for (I at = first[i]; at < first[i + 1]; ++at) {
      const S* const line = of_block + at * (p + 2);
      const S factor = EDGE == SOFTMAX ? power_from(line[0], total.largest) : S(1);
      sum.add(c < p ? factor * line[2 + c] : S(0));
      powers.add(factor * line[1]);
    }
    total.sums[0] = sum.value();
    total.powers = powers.value();
    const S share = EDGE == SOFTMAX ? share_of_total(total.powers) : S(1);
    if (EDGE == SOFTMAX && log_totals && c == 0)
      log_totals[b * log_totals_step + rows[i]] = total.log_total();
    if (c < p)
      store_narrowed(out[b * out_step + rows[i] * out_ld + c], total.sums[0], share, S(0));
  }
}

} // namespace wl
