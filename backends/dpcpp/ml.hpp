// Sparse times dense, sampled dense times dense, and both fused: a wave (on CPU devices a
// work-item) processes one row of the pattern at a time. Sums of 16-bit numbers are held in float.
#pragma once
#include "unified/edge_inputs.hpp"
#include "unified/long_sums.hpp"
#include "simt/narrow.hpp"
#include "dpcpp/arithmetic.hpp"

namespace wl {

// Columns that a lane holds at a time: wider products read the row's entries again for each strip.
// On CPU devices they are four vectors of the largest width.
template <class T>
constexpr int STRIP = WL_WARP == 1 ? 256 / int(sizeof(held_t<T>)) : 4;

// The columns of a strip: as many as the lanes hold, or fewer on GPUs, where some lanes are then
// idle. On CPU devices their number is known at compile time, so that the compiler vectorizes.
template <int N>
struct exactly {
  static constexpr int held = N;
  WL_DEVICE operator i64() const { return N; }
};
template <int N>
struct at_most {
  static constexpr int held = N;
  i64 columns;
  WL_DEVICE operator i64() const { return columns; }
};

// Blocks of rows of one batch; `step` is the distance of batches and `ld` that of rows.
template <class T>
struct batched {
  T* data;
  i64 ld, step;
  WL_DEVICE T* row(i64 b, i64 i) const { return data + b * step + i * ld; }
};

// Calls body(b, row) for the rows of all batches that this wave processes.
template <class Body>
WL_DEVICE void for_rows(const item& it, i64 m, i64 batch, const Body& body) {
  const i64 units = m * batch;
  if constexpr (WL_BLOCK == 1) {
    const i64 end = units * (it.block() + 1) / it.blocks();
    for (i64 u = units * it.block() / it.blocks(); u < end; ++u)
      body(u / m, u % m);
  } else {
    constexpr int waves = WL_BLOCK / WL_WARP;
    for (i64 u = it.block() * waves + wave_of(it); u < units; u += it.blocks() * waves)
      body(u / m, u % m);
  }
}

// sum_c a_c b_c, in every lane of the wave.
template <class T>
WL_DEVICE held_t<T> dot_of_wave(const item& it, i64 k, const T* a, const T* b) {
  using S = held_t<T>;
  if constexpr (WL_WARP > 1) {
    return sum_of_lanes<WL_WARP>(it, sum_of_terms<S>(k, WL_WARP, [&](i64 begin, i64 end) {
                                   S sum{};
                                   for (i64 c = begin + lane_of(it); c < end; c += WL_WARP)
                                     sum += widen(a[c]) * widen(b[c]);
                                   return sum;
                                 }));
  } else {
    constexpr int together = 16;
    return sum_of_terms<S>(k, together, [&](i64 begin, i64 end) {
      S sums[together] = {};
      i64 c = begin;
      for (; c + together <= end; c += together)
#pragma unroll
        for (int l = 0; l < together; ++l)
          sums[l] += widen(a[c + l]) * widen(b[c + l]);
      for (; c < end; ++c)
        sums[0] += widen(a[c]) * widen(b[c]);
      for (int half = together / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l)
          sums[l] += sums[l + half];
      return sums[0];
    });
  }
}

// The sums of a row for N columns of a lane. The terms of a piece are added up one after the other,
// and pieces with their rounding errors: see long_sums.hpp.
template <int N, class S>
struct piece_sums {
  S piece[N] = {};
  long_sum<S> pieces[sums_in_pieces<S> ? N : 1] = {};
  bool joined = false;

  // Calls body(first, last) for the pieces of entries [begin, end), and makes the sums of all.
  template <class Body>
  WL_DEVICE void add_all(i64 begin, i64 end, const Body& body) {
    if constexpr (sums_in_pieces<S>) {
      for (; end - begin > PIECE_OF_SUM; begin += PIECE_OF_SUM) {
        body(begin, begin + PIECE_OF_SUM);
        join();
      }
      body(begin, end);
      if (joined) {
        join();
        for (int n = 0; n < N; ++n)
          piece[n] = pieces[n].value();
      }
    } else {
      body(begin, end);
    }
  }
  WL_DEVICE void scale(S factor) {
    for (int n = 0; n < N; ++n)
      piece[n] *= factor;
    if constexpr (sums_in_pieces<S>)
      if (joined)
        for (int n = 0; n < N; ++n) {
          pieces[n].high *= factor;
          pieces[n].low *= factor;
        }
  }

private:
  WL_DEVICE void join() {
    for (int n = 0; n < N; ++n) {
      pieces[n].add(piece[n]);
      piece[n] = S{};
    }
    joined = true;
  }
};

// held_l += factor row_l for the columns that this lane holds of a strip.
template <class T, class N>
WL_DEVICE void add_row(const item& it, N columns, held_t<T> factor, const T* row, held_t<T>* held) {
#pragma unroll
  for (int s = 0; s < N::held; ++s) {
    const i64 c = lane_of(it) + i64(s) * WL_WARP;
    if (WL_WARP == 1 || c < columns)
      multiply_add(held[s], factor, widen(row[c]));
  }
}

// Calls body(first, columns) for strips of N columns from `first` on, then for narrower ones.
template <int N, class Body>
WL_DEVICE void for_narrower(i64 first, i64 k, const Body& body) {
  for (; first + N <= k; first += N)
    body(first, exactly<N>{});
  if constexpr (N > 1)
    for_narrower<N / 2>(first, k, body);
}

// Calls body(first, columns) for the strips of k columns.
template <class T, class Body>
WL_DEVICE void for_strips(i64 k, const Body& body) {
  if constexpr (WL_WARP == 1) {
    for_narrower<STRIP<T>>(0, k, body);
  } else {
    constexpr i64 width = i64(STRIP<T>) * WL_WARP;
    for (i64 first = 0; first < k; first += width)
      body(first, at_most<STRIP<T>>{k - first < width ? k - first : width});
  }
}

template <class T, class I>
WL_DEVICE void spmm_rows(const item& it, i64 m, i64 k, i64 batch, const I* indptr, const I* indices,
                         const T* values, i64 values_step, const T* B, i64 B_ld, i64 B_step, T* C,
                         i64 C_ld, i64 C_step, held_t<T> alpha, held_t<T> beta) {
  const batched<const T> of_B{B, B_ld, B_step};
  const batched<T> of_C{C, C_ld, C_step};
  for_rows(it, m, batch, [&](i64 b, i64 row) {
    for_strips<T>(k, [&](i64 first, auto columns) {
      piece_sums<decltype(columns)::held, held_t<T>> sums;
      sums.add_all(indptr[row], indptr[row + 1], [&](i64 begin, i64 end) {
        for (i64 e = begin; e < end; ++e)
          add_row(it, columns, widen(values[b * values_step + e]), of_B.row(b, indices[e]) + first,
                  sums.piece);
      });
      T* const target = of_C.row(b, row) + first;
      for (i64 c = lane_of(it), s = 0; c < columns; c += WL_WARP, ++s)
        store_narrowed(target[c], sums.piece[s], alpha, beta);
    });
  });
}

template <class T, class I>
WL_DEVICE void sddmm_rows(const item& it, i64 m, i64 k, i64 batch, const I* indptr,
                          const I* indices, const T* values, i64 values_step, const T* C, i64 C_ld,
                          i64 C_step, const T* B, i64 B_ld, i64 B_step, T* sampled, i64 S_step,
                          held_t<T> alpha, held_t<T> beta) {
  const batched<const T> of_C{C, C_ld, C_step}, of_B{B, B_ld, B_step};
  for_rows(it, m, batch, [&](i64 b, i64 row) {
    for (i64 e = indptr[row]; e < indptr[row + 1]; ++e) {
      held_t<T> dot = dot_of_wave<T>(it, k, of_C.row(b, row), of_B.row(b, indices[e]));
      if (values)
        dot *= widen(values[b * values_step + e]);
      if (lane_of(it) == 0)
        store_narrowed(sampled[b * S_step + e], dot, alpha, beta);
    }
  });
}

enum edge_function { IDENTITY = 0, SIGMOID = 1, SOFTMAX = 2 };

template <class S>
WL_DEVICE S weight_of(i64 edge, S s) {
  if (edge != SIGMOID)
    return s;
  const S small = sycl::exp(-magnitude(s));
  return (s < S(0) ? small : S(1)) / (S(1) + small);
}

// The base of the exponentials in softmax. If all scores so far are minus infinity it is 0, since
// the difference of a score and minus infinity would be NaN.
template <class S>
WL_DEVICE S base_of(S largest) {
  return largest == -S(__builtin_huge_valf()) ? S(0) : largest;
}

// The entries of a row: listed, or all positions between two columns.
template <class I>
struct listed_entries {
  const I *indptr, *indices;
  WL_DEVICE i64 begin(i64 row) const { return indptr[row]; }
  WL_DEVICE i64 end(i64 row) const { return indptr[row + 1]; }
  WL_DEVICE i64 column(i64 e) const { return indices[e]; }
};
template <class I>
struct interval_entries {
  const I *first, *last;
  WL_DEVICE i64 begin(i64 row) const { return first[row]; }
  WL_DEVICE i64 end(i64 row) const { return last[row]; }
  WL_DEVICE i64 column(i64 e) const { return e; }
};

// Numbers of rows, in blocks that are `step` elements apart; nowhere if `data` is null.
template <class S>
struct numbers_of_rows {
  S* data;
  i64 step;
};

// A score that exceeds the base of the exponentials by less than this does not change the base: see
// omp/fusedmm.hpp.
constexpr float RISE_OF_BASE = 1;

// Softmax reads the row once: earlier sums are scaled down when a larger score occurs. A row is 0
// if all of its scores are minus infinity. The logarithm of its total is stored if it is requested;
// for such a row it is plus infinity, so that exp(score - total) is 0 for all scores.
template <class T, class Entries, class Function>
WL_DEVICE void fuse_rows(const item& it, i64 m, i64 k, i64 p, i64 batch, const Entries& entries,
                         const T* values, i64 values_step, const batched<const T>& of_C,
                         const batched<const T>& of_B, const batched<const T>& of_D,
                         const batched<T>& of_E, const numbers_of_rows<held_t<T>>& log_totals,
                         held_t<T> alpha, i64 edge, const Function& function) {
  using S = held_t<T>;
  for_rows(it, m, batch, [&](i64 b, i64 row) {
    for_strips<T>(p, [&](i64 first, auto columns) {
      constexpr int width = decltype(columns)::held;
      piece_sums<width + 1, S> sums; // the last is that of the weights
      S base = -__builtin_huge_valf();
      sums.add_all(entries.begin(row), entries.end(row), [&](i64 begin, i64 end) {
        for (i64 e = begin; e < end; ++e) {
          S s = dot_of_wave<T>(it, k, of_C.row(b, row), of_B.row(b, entries.column(e))) * alpha;
          if (values)
            s *= widen(values[b * values_step + e]);
          if constexpr (Function::TRACED)
            s = function(s, b, row, entries.column(e), e);
          S weight = weight_of(edge, s);
          if (edge == SOFTMAX) {
            if (s > base + S(RISE_OF_BASE)) {
              sums.scale(sycl::exp(base - s));
              base = s;
            }
            weight = sycl::exp(s - base_of(base));
            sums.piece[width] += weight;
          }
          add_row(it, columns, weight, of_D.row(b, entries.column(e)) + first, sums.piece);
        }
      });
      const S total = sums.piece[width];
      const bool divide = edge == SOFTMAX && total != S(0);
      if (edge == SOFTMAX && log_totals.data && first == 0 && lane_of(it) == 0)
        log_totals.data[b * log_totals.step + row] =
            total == S(0) ? S(__builtin_huge_valf()) : base + logarithm(total);
      T* const target = of_E.row(b, row) + first;
      for (i64 c = lane_of(it), i = 0; c < columns; c += WL_WARP, ++i)
        target[c] = narrowed<T>::of(divide ? sums.piece[i] / total : sums.piece[i]);
    });
  });
}

template <class T, class I>
WL_DEVICE void fusedmm_rows(const item& it, i64 m, i64 k, i64 p, i64 batch, const I* indptr,
                            const I* indices, const T* values, i64 values_step, const T* C,
                            i64 C_ld, i64 C_step, const T* B, i64 B_ld, i64 B_step, const T* D,
                            i64 D_ld, i64 D_step, T* E, i64 E_ld, i64 E_step, held_t<T>* log_totals,
                            i64 log_totals_step, held_t<T> alpha, i64 edge) {
  fuse_rows<T>(it, m, k, p, batch, listed_entries<I>{indptr, indices}, values, values_step,
               {C, C_ld, C_step}, {B, B_ld, B_step}, {D, D_ld, D_step}, {E, E_ld, E_step},
               {log_totals, log_totals_step}, alpha, edge, scores_alone{});
}

template <class T, class I>
WL_DEVICE void mask_fusedmm_rows(const item& it, i64 m, i64 k, i64 p, i64 batch, const I* first,
                                 const I* last, const T* C, i64 C_ld, i64 C_step, const T* B,
                                 i64 B_ld, i64 B_step, const T* D, i64 D_ld, i64 D_step, T* E,
                                 i64 E_ld, i64 E_step, held_t<T>* log_totals, i64 log_totals_step,
                                 held_t<T> alpha, i64 edge) {
  fuse_rows<T>(it, m, k, p, batch, interval_entries<I>{first, last}, static_cast<const T*>(nullptr),
               0, {C, C_ld, C_step}, {B, B_ld, B_step}, {D, D_ld, D_step}, {E, E_ld, E_step},
               {log_totals, log_totals_step}, alpha, edge, scores_alone{});
}

// The same with a function of the user between the scores and the edge function.
template <class PROGRAM, class T, class I>
WL_DEVICE void fusedmm_traced_rows(
    const item& it, i64 m, i64 k, i64 p, i64 batch, const I* indptr, const I* indices,
    const T* values, i64 values_step, const T* C, i64 C_ld, i64 C_step, const T* B, i64 B_ld,
    i64 B_step, const T* D, i64 D_ld, i64 D_step, const held_t<T>* of_rows, i64 of_rows_ld,
    i64 of_rows_step, const held_t<T>* of_columns, i64 of_columns_ld, i64 of_columns_step,
    const held_t<T>* of_entries, i64 of_entries_ld, i64 of_entries_step, T* E, i64 E_ld, i64 E_step,
    held_t<T>* log_totals, i64 log_totals_step, held_t<T> alpha, i64 edge) {
  const traced_scores<PROGRAM, held_t<T>> function{{{of_rows, of_rows_ld, of_rows_step},
                                                    {of_columns, of_columns_ld, of_columns_step},
                                                    {of_entries, of_entries_ld, of_entries_step}}};
  fuse_rows<T>(it, m, k, p, batch, listed_entries<I>{indptr, indices}, values, values_step,
               {C, C_ld, C_step}, {B, B_ld, B_step}, {D, D_ld, D_step}, {E, E_ld, E_step},
               {log_totals, log_totals_step}, alpha, edge, function);
}

template <class PROGRAM, class T, class I>
WL_DEVICE void
mask_fusedmm_traced_rows(const item& it, i64 m, i64 k, i64 p, i64 batch, const I* first,
                         const I* last, const T* C, i64 C_ld, i64 C_step, const T* B, i64 B_ld,
                         i64 B_step, const T* D, i64 D_ld, i64 D_step, const held_t<T>* of_rows,
                         i64 of_rows_ld, i64 of_rows_step, const held_t<T>* of_columns,
                         i64 of_columns_ld, i64 of_columns_step, T* E, i64 E_ld, i64 E_step,
                         held_t<T>* log_totals, i64 log_totals_step, held_t<T> alpha, i64 edge) {
  const traced_scores<PROGRAM, held_t<T>> function{{{of_rows, of_rows_ld, of_rows_step},
                                                    {of_columns, of_columns_ld, of_columns_step},
                                                    {nullptr, 0, 0}}};
  fuse_rows<T>(it, m, k, p, batch, interval_entries<I>{first, last}, static_cast<const T*>(nullptr),
               0, {C, C_ld, C_step}, {B, B_ld, B_step}, {D, D_ld, D_step}, {E, E_ld, E_step},
               {log_totals, log_totals_step}, alpha, edge, function);
}

} // namespace wl
