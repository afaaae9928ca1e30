// C = alpha A B + beta C: A in compressed rows, B and C dense and row-major.
//
// Row-split with explicit SIMD after Zubair and Bauinger (2023): a tile of a row of C stays in
// registers while the entries of the row are read once. B comes in column tiles that stay in the
// second-level cache, or with panels in the plan, in blocks of such a tile that stay in the first.
#pragma once

#include "unified/long_sums.hpp"
#include "omp/operand.hpp"
#include "omp/pattern_plan.hpp"
#include "omp/row_cuts.hpp"

namespace wl {

// Registers of a column tile with packed B, and with B read in place. 4096 x 4096, 10 %, 128
// columns, one thread of a Granite Rapids, packed: 2 registers 8.0 ms, 4 7.3, 8 10.9; unpacked:
// 22.5, 17.7, 16.5.
constexpr int kPackedRegisters = 4;
constexpr int kDirectRegisters = 8;

// Packing is faster if B does not fit the second-level cache and its rows are used often. A copy on
// huge pages has fewer pages than the TLB has entries, but other threads read it from the cache of
// the thread that wrote it. Two threads of a Zen 4, in place and packed, microseconds (2026-11-22):
// 512 x 256, 90 %, 256 columns (256 KB) 76, 103; 2048 x 2048, 98 %, 32 columns (256 KB) 53, 81;
// 1024 x 1024, 90 %, 128 columns (512 KB) 265, 313; 4096 x 4096, 98 %, 32 columns (512 KB) 250,
// 306; 12500 rows of 18 entries, 128 columns (6.4 MB) 750, 970. 4096 x 4096, 10 %, 32 columns takes
// one thread of a Granite Rapids 2.1 ms with B on huge pages and 4.1 without, but this case has
// panels.
constexpr i64 kPackBytes = i64(1) << 20;
constexpr i64 kPackReuse = 64;

// Columns of a tile of panels: wide tiles share a value among more products, but leave fewer rows
// of B in the cache. 4096 x 4096, 10 %, 128 columns of float32, one thread of a Zen 4: 128
// bytes 6.9 ms, 256 6.0, 512 7.0.
constexpr int kPanelRegisters = VECTOR_BYTES == 64 ? 4 : 8;

template <class S>
struct factor_of {
  using type = computed_t<S>;
};
template <class R>
struct factor_of<complex<R>> {
  using type = complex<R>;
};

// S is the stored type; sums are computed in computed_t<S>.
template <class S>
struct SpmmOperands {
  using T = computed_t<S>;
  using Factor = typename factor_of<S>::type;
  static constexpr bool is_complex = !same<S, real_t<S>>::value;
  static constexpr int per_element = is_complex ? 2 : 1;

  i64 n, k;
  const S* values;
  mat<const S> B;
  mat<S> C;
  Factor alpha, beta;
  const PatternPlan* plan;

  bool wants_packing() const {
    return n * k * i64(sizeof(S)) > kPackBytes && plan->entries >= kPackReuse * n;
  }
};

template <class S, class I>
struct Spmm : SpmmOperands<S> {
  const I *indptr, *indices;
};

// The sum of `count` entries of complex numbers; lanes hold real and imaginary parts alternately.
// The products with the real and with the imaginary parts of the values are summed separately and
// combined at the end.
template <int L, int R, class T, class X, class Operand>
inline void sum_complex_entries(const complex<T>* values, const X* columns, i64 count,
                                const Operand& B, wide<T, L> (&sum)[R]) {
  wide<T, L> by_real[R] = {}, by_imaginary[R] = {};
  for (i64 e = 0; e < count; ++e) {
    const complex<T> value = values[e];
    const T* const b = B.row(columns[e]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const wide<T, L> x = load<T, L>(b + r * L);
      by_real[r] += value.re * x;
      by_imaginary[r] += value.im * x;
    }
  }
  for (int r = 0; r < R; ++r)
    for (int l = 0; l < L; l += 2) {
      sum[r][l] = by_real[r][l] - by_imaginary[r][l + 1];
      sum[r][l + 1] = by_real[r][l + 1] + by_imaginary[r][l];
    }
}

// The sum of `count` entries in R registers of L lanes.
template <int L, int R, class S, class X, class Operand>
inline void sum_entries(const S* values, const X* columns, i64 count, const Operand& B,
                        wide<computed_t<S>, L> (&sum)[R]) {
  using T = computed_t<S>;
  if constexpr (SpmmOperands<S>::is_complex)
    return sum_complex_entries<L, R>(values, columns, count, B, sum);
  else {
    // As many independent sums as hide the latency of an addition.
    constexpr int U = R >= 4 ? 1 : R == 2 ? 2 : 4;
    wide<T, L> part[U][R] = {};
    const auto add = [&](i64 e, wide<T, L>(&to)[R]) {
      const T value = widen(values[e]);
      const T* const b = B.row(columns[e]);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        to[r] += value * load<T, L>(b + r * L);
    };
    i64 e = 0;
    for (; e + U <= count; e += U) {
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u)
        add(e + u, part[u]);
    }
    if constexpr (U > 1)
      for (; e < count; ++e)
        add(e, part[0]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[r] = part[0][r];
      for (int u = 1; u < U; ++u)
        sum[r] += part[u][r];
    }
  }
}

template <class T, int L, int R>
struct register_sums {
  wide<T, L> of[R];
};

// The sum of a long row: see long_sums.hpp.
template <int L, int R, class S, class X, class Operand>
WL_NOINLINE register_sums<computed_t<S>, L, R> sum_long_row(const S* values, const X* columns,
                                                            i64 count, Operand B) {
  using T = computed_t<S>;
  long_sum<wide<T, L>> totals[R] = {};
  for (i64 e = 0; e < count; e += PIECE_OF_SUM) {
    wide<T, L> part[R];
    sum_entries<L, R>(values + e, columns + e, std::min(PIECE_OF_SUM, count - e), B, part);
    for (int r = 0; r < R; ++r)
      totals[r].add(part[r]);
  }
  register_sums<T, L, R> made;
  for (int r = 0; r < R; ++r)
    made.of[r] = totals[r].value();
  return made;
}

// The sum of a row of any length.
template <int L, int R, class S, class X, class Operand>
inline void sum_row(const S* values, const X* columns, i64 count, const Operand& B,
                    wide<computed_t<S>, L> (&sum)[R]) {
  if constexpr (sums_in_pieces<computed_t<S>>)
    if (count > PIECE_OF_SUM) {
      const auto made = sum_long_row<L, R>(values, columns, count, B);
      for (int r = 0; r < R; ++r)
        sum[r] = made.of[r];
      return;
    }
  sum_entries<L, R>(values, columns, count, B, sum);
}

// c = alpha sum + beta c; beta = 0 does not read c. Inlined, GCC believes that it reads beyond
// sums.
template <class S>
[[gnu::noinline]] void finish_row(const SpmmOperands<S>& o, i64 columns, const computed_t<S>* sum,
                                  S* c) {
  for (i64 j = 0; j < columns; ++j) {
    if constexpr (SpmmOperands<S>::is_complex) {
      store(c[j], S(sum[2 * j], sum[2 * j + 1]), o.alpha, o.beta);
    } else {
      auto result = o.alpha * sum[j];
      if (!(o.beta == 0))
        result += o.beta * widen(c[j]);
      narrow(result, c[j]);
    }
  }
}

// One column tile: `columns` columns of C from `first`, in R registers of L lanes.
template <int L, int R, class S, class I>
void spmm_tile(const Spmm<S, I>& o, const Operand<computed_t<S>>& B, i64 first, i64 columns,
               int threads) {
  using T = computed_t<S>;
  constexpr i64 kWidth = L * R;
  const PatternPlan& plan = *o.plan;
  const bool whole = columns * Spmm<S, I>::per_element == kWidth;
  T* const slots = workspace<T>(1, plan.slots * kWidth);

  const auto save_sum = [](T* to, const wide<T, L>(&sum)[R]) {
    for (int r = 0; r < R; ++r)
      save<T, L>(to + r * L, sum[r]);
  };

  plan.for_parts(threads, [&](const Part& part) {
    const bool in_place = same<S, T>::value && whole && part.slot < 0;
    plan.for_segments(
        part, o.indptr,
        [&](i64 row, i64 begin, i64 end) {
          wide<T, L> sum[R];
          sum_row<L, R>(o.values + begin, o.indices + begin, end - begin, B, sum);
          S* const c = &o.C(row, first);
          if constexpr (same<S, T>::value) {
            if (in_place) {
              for (int r = 0; r < R; ++r) {
                wide<T, L> result = o.alpha * sum[r];
                if (!(o.beta == 0))
                  result += o.beta * load<T, L>(c + r * L);
                save<T, L>(c + r * L, result);
              }
              return;
            }
          }
          if (part.slot >= 0) {
            save_sum(slots + part.slot * kWidth, sum);
          } else {
            alignas(64) T of_row[kWidth];
            save_sum(of_row, sum);
            finish_row(o, columns, of_row, c);
          }
        },
        [](i64, i64) {});
  });

  for (const LongRow& cut : plan.long_rows) {
    T* const sum = slots + cut.first_slot * kWidth;
    for (i64 slot = cut.first_slot + 1; slot < cut.last_slot; ++slot)
      for (i64 j = 0; j < kWidth; ++j)
        sum[j] += slots[slot * kWidth + j];
    finish_row(o, columns, sum, &o.C(cut.row, first));
  }
}

// The same by panels: a panel's rows of B are read from the first-level cache while the sums of a
// part's rows stay in the second.
template <int R, class S>
void spmm_panels(const SpmmOperands<S>& o, const Operand<computed_t<S>>& B, i64 first, i64 columns,
                 int threads) {
  using T = computed_t<S>;
  constexpr int L = kLanesOf<T>;
  constexpr i64 kWidth = L * R;
  const PatternPlan& plan = *o.plan;
  plan.for_parts(threads, [&](const Part& part) {
    T* const sums = workspace<T>(2, (part.last - part.first) * kWidth);
    std::fill_n(sums, (part.last - part.first) * kWidth, T(0));
    plan.for_pieces(
        part,
        [&](i64 row, i64 begin, i64 count, const u16* at, i64 first_column) {
          wide<T, L> sum[R];
          const Operand<T> of_panel{B.row(first_column), B.ld};
          sum_entries<L, R>(o.values + begin, at, count, of_panel, sum);
          T* const to = sums + row * kWidth;
          for (int r = 0; r < R; ++r)
            save<T, L>(to + r * L, load<T, L>(to + r * L) + sum[r]);
        },
        [&](i64 entry) { prefetch_some(o.values + entry); });
    for (i64 row = part.first; row < part.last; ++row)
      finish_row(o, columns, sums + (row - part.first) * kWidth, &o.C(row, first));
  });
}

// Columns [first, first + columns) of B: where they are, or in a copy in rows of `width` numbers,
// which numbers of 16 bits need in any case.
template <class S>
Operand<computed_t<S>> tile_of(const SpmmOperands<S>& o, i64 first, i64 columns, i64 width,
                               bool packs, int threads) {
  using T = computed_t<S>;
  constexpr int per_element = SpmmOperands<S>::per_element;
  if constexpr (same<real_t<S>, T>::value) {
    const T* const B = reinterpret_cast<const T*>(o.B.data + first);
    const i64 ld = o.B.ld * per_element;
    if (!packs)
      return {B, ld};
    return pack(B, ld, o.n, columns * per_element, width, workspace<T>(0, o.n * width), threads);
  } else {
    return pack(o.B.data + first, o.B.ld, o.n, columns, width, workspace<T>(0, o.n * width),
                threads);
  }
}

// Column tiles of B by panels, the widest first; the rest fills its registers with zeros.
template <int R, class S>
void spmm_panel_tiles(const SpmmOperands<S>& o, i64 first, int threads) {
  using T = computed_t<S>;
  constexpr i64 kWidth = R * kLanesOf<T>;
  constexpr i64 kColumns = kWidth / SpmmOperands<S>::per_element;
  const auto tile = [&](i64 columns) {
    const bool packs = o.wants_packing() || columns != kColumns;
    spmm_panels<R>(o, tile_of(o, first, columns, kWidth, packs, threads), first, columns, threads);
    first += columns;
  };
  while (o.k - first >= kColumns)
    tile(kColumns);
  if (first == o.k)
    return;
  if constexpr (R > 1)
    spmm_panel_tiles<R / 2>(o, first, threads);
  else
    tile(o.k - first);
}

// Column tiles of B, the widest first.
template <int R, int L, class S, class I>
void spmm_tiles(const Spmm<S, I>& o, i64 first, bool packs, int threads) {
  constexpr int per_element = Spmm<S, I>::per_element;
  constexpr i64 kColumns = R * L / per_element;
  // The last tile is padded once no narrower register holds it. Two columns have one of their own:
  // padded to four in a copy they took four times as long as four columns.
  constexpr bool narrower = R > 1 || L > 2;
  const auto tile = [&](i64 columns) {
    const auto B = tile_of(o, first, columns, i64(R * L), packs || columns != kColumns, threads);
    spmm_tile<L, R>(o, B, first, columns, threads);
    first += columns;
  };
  while (o.k - first >= kColumns)
    tile(kColumns);
  if constexpr (narrower) {
    constexpr int next_R = R > 1 ? R / 2 : 1, next_L = R > 1 ? L : L / 2;
    // A rest of more than half a register takes all of it.
    if (R == 1 && o.k - first > kColumns / 2)
      tile(o.k - first);
    else if (first < o.k)
      spmm_tiles<next_R, next_L>(o, first, packs, threads);
  } else if (first < o.k) {
    tile(o.k - first);
  }
}

template <class S, class I>
void spmm(const Spmm<S, I>& o, int threads) {
  using T = computed_t<S>;
  constexpr int L = kLanesOf<T>;
  constexpr int direct = Spmm<S, I>::is_complex ? kPackedRegisters : kDirectRegisters;
  if (o.plan->has_panels())
    spmm_panel_tiles<kPanelRegisters>(static_cast<const SpmmOperands<S>&>(o), 0, threads);
  else if (o.wants_packing())
    spmm_tiles<kPackedRegisters, L>(o, 0, true, threads);
  else
    spmm_tiles<direct, L>(o, 0, false, threads);
}

// The sum of entries [begin, end) in one column of B with elements `step` apart.
template <class S, class I>
inline computed_t<S> sum_over_lanes(const Spmm<S, I>& o, const computed_t<S>* b, i64 step,
                                    i64 begin, i64 end) {
  using T = computed_t<S>;
  if constexpr (same<S, T>::value)
    if (step == 1)
      return row_dot(o.values + begin, o.indices + begin, end - begin, b);
  return sum_of_terms<T>(end - begin, 8, [&](i64 first, i64 last) {
    T sum(0);
#pragma omp simd reduction(+ : sum)
    for (i64 e = begin + first; e < begin + last; ++e)
      sum += static_cast<T>(widen(o.values[e])) * b[i64(o.indices[e]) * step];
    return sum;
  });
}

// Lanes are entries of a row instead of columns ("parallel reduction"): for numbers of columns that
// do not fill a register.
template <class S, class I>
void spmm_by_reduction(const Spmm<S, I>& o, int threads) {
  using T = computed_t<S>;
  static_assert(!Spmm<S, I>::is_complex, "no simd reduction of complex numbers");
  Operand<T> B{reinterpret_cast<const T*>(o.B.data), o.B.ld};
  if constexpr (!same<S, T>::value)
    B = pack(o.B.data, o.B.ld, o.n, o.k, o.k, workspace<T>(0, o.n * o.k), threads);
  const PatternPlan& plan = *o.plan;
  T* const slots = workspace<T>(1, plan.slots * o.k);
  plan.for_parts(threads, [&](const Part& part) {
    plan.for_segments(
        part, o.indptr,
        [&](i64 row, i64 begin, i64 end) {
          for (i64 c = 0; c < o.k; ++c) {
            const T sum = sum_over_lanes(o, B.data + c, B.ld, begin, end);
            if (part.slot >= 0)
              slots[part.slot * o.k + c] = sum;
            else
              finish_row(o, 1, &sum, &o.C(row, c));
          }
        },
        [](i64, i64) {});
  });
  for (const LongRow& cut : plan.long_rows)
    for (i64 c = 0; c < o.k; ++c) {
      T sum = slots[cut.first_slot * o.k + c];
      for (i64 slot = cut.first_slot + 1; slot < cut.last_slot; ++slot)
        sum += slots[slot * o.k + c];
      finish_row(o, 1, &sum, &o.C(cut.row, c));
    }
}

} // namespace wl
