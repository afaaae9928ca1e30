// E_i = sum_j f(alpha <C_i, B_j> [A_ij]) D_j over the pattern of A, in one pass.
//
// The products of a chunk of a row are computed, f is applied, and the weighted rows of D are added
// up: the sampled matrix is never stored (FusedMM of Rahman, Sujon and Azad 2021). Softmax is
// computed online (Milakov and Gimelshein 2018), relative to the largest product so far; earlier
// sums are scaled down when a larger product occurs. As in the reference, a row is 0 if all of its
// products are minus infinity, and NaN if one is NaN or plus infinity.
#pragma once

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "omp/edge_program.hpp"
#include "omp/entry_columns.hpp"
#include "omp/piece_sums.hpp"
#include "omp/sddmm.hpp"

namespace wl {

enum class Edge { identity, sigmoid, softmax };

inline Edge edge_called(const std::string& operation, const std::string& name) {
  if (name == "identity")
    return Edge::identity;
  if (name == "sigmoid")
    return Edge::sigmoid;
  if (name == "softmax")
    return Edge::softmax;
  throw std::invalid_argument(operation + ": no edge function is called " + name);
}

// The number of products of a chunk. With 128 columns their rows of B fit in the first-level cache,
// so that D is read from there if it is B.
constexpr i64 kEdgeChunk = kProgramChunk;

template <class S, class Pattern>
struct Fusedmm {
  using T = computed_t<S>;
  i64 m, n, k, p;
  Pattern pattern;
  const S* values; // nullptr where only the pattern counts
  mat<const S> C, B, D;
  mat<S> E;
  T* log_totals; // of the rows of a softmax; nullptr if they are not needed
  T alpha;
  Edge edge;
  bool same_operand; // D is B
  const PatternPlan* plan;
  // A function of the user that is applied before `edge`, or nullptr.
  const EdgeProgram<T>* function = nullptr;
};

// The factor that turns the powers of a row into weights: 0 for a row without weight.
template <class T>
T share_of_total(T total) {
  return total == T(0) ? T(0) : T(1) / total;
}

// The logarithm of a sum of powers. For a row without weight it is plus infinity: the exponentials
// of all scores minus it are then 0, like the weights (FlashAttention-2 of Dao 2023).
template <class T>
T log_of_total(T base, T total) {
  return total == T(0) ? std::numeric_limits<T>::infinity() : base + std::log(total);
}

// A score that exceeds the base of the exponentials by less than this does not change the base. So
// a row with slowly increasing scores is rescaled once for many chunks, and the rounding errors of
// the scales do not accumulate.
template <class T>
constexpr T kRiseOfBase = T(1);

// The state of a row of E before all of its entries were processed: the sum of its weighted rows,
// the total of the weights in a separate register, and the base of the exponentials.
template <class T>
class RowSum {
  PieceSum<T> sums_;
  const i64 width_; // of rows, in whole registers
  T& base_;

  static constexpr i64 L = kLanesOf<T>;

public:
  static constexpr i64 size(i64 width) { return PieceSum<T>::size(width + L) + L; }

  RowSum(T* memory, i64 width) : sums_(memory + L, width + L), width_(width), base_(memory[0]) {}

  void clear() const {
    sums_.clear();
    base_ = -std::numeric_limits<T>::infinity();
  }

  static T exp(T x) { return exp_of<T, kLanesOf<T>>(wide<T>{} + x)[0]; }

  // If all products so far are minus infinity the base is 0: their difference from minus infinity
  // would be NaN, and their exponentials must be 0.
  T base() const { return base_ == -std::numeric_limits<T>::infinity() ? T(0) : base_; }

  // The rows of `count` more entries are added to this.
  T* before(i64 count) const {
    sums_.before(count);
    return sums_.piece();
  }
  void add_to_total(T weights) const { sums_.piece()[width_] += weights; }

  // Rescales the sums for a larger product.
  void raise(T to) const {
    if (!(to > base_ + kRiseOfBase<T>))
      return;
    if (base_ != -std::numeric_limits<T>::infinity())
      sums_.scale(exp(base_ - to));
    base_ = to;
  }

  // Adds the sums of another part of the row.
  void merge(const RowSum& other) const {
    raise(other.base_);
    sums_.merge(other.sums_, other.base_ == base_ ? T(1) : exp(other.base_ - base_));
  }

  // The sum of the rows, and behind `width` the total; the last use of a state.
  const T* value() const { return sums_.value(); }
};

// sum += weights_e D[columns_e], R registers at a time; for small R, in enough independent sums to
// hide the latency of an addition.
template <int R, class T, class Columns>
inline void add_rows(const Operand<T>& D, Columns columns, const T* weights, i64 count, i64 from,
                     i64 width, T* sum) {
  constexpr int L = kLanesOf<T>;
  constexpr int U = R >= 4 ? 1 : R == 2 ? 2 : 4;
  for (; from + R * L <= width; from += R * L) {
    wide<T> part[U][R] = {};
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      part[0][r] = load<T>(sum + from + r * L);
    const auto add = [&](i64 e, wide<T>(&to)[R]) {
      const T* const d = D.row(columns[e]) + from;
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        to[r] += weights[e] * load<T>(d + r * L);
    };
    i64 e = 0;
    for (; e + U <= count; e += U)
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u)
        add(e + u, part[u]);
    if constexpr (U > 1)
      for (; e < count; ++e)
        add(e, part[0]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      for (int u = 1; u < U; ++u)
        part[0][r] += part[u][r];
      save<T>(sum + from + r * L, part[0][r]);
    }
  }
  if constexpr (R > 1)
    add_rows<R / 2>(D, columns, weights, count, from, width, sum);
}

// The largest of `count` > 0 scores, behind which minus infinities fill a register.
template <class T>
inline T largest_score(const T* s, i64 count) {
  constexpr int L = kLanesOf<T>;
  wide<T> largest = load<T>(s);
  for (i64 e = L; e < count; e += L) {
    const wide<T> next = load<T>(s + e);
    largest = next > largest ? next : largest;
  }
  return largest_of<T, L>(largest);
}

// Turns the products of a chunk into weights. Behind them minus infinities fill a register.
template <class T>
inline void weigh(Edge edge, i64 count, T* s, const RowSum<T>& row) {
  constexpr int L = kLanesOf<T>;
  if (edge == Edge::sigmoid) {
    for (i64 e = 0; e < count; e += L) {
      const wide<T> x = load<T>(s + e), zero{};
      const wide<T> small = exp_of<T, L>(x < zero ? x : -x);
      save<T>(s + e, (x < zero ? small : zero + T(1)) / (small + T(1)));
    }
  } else if (edge == Edge::softmax) {
    row.raise(largest_score(s, count));
    const T base = row.base();
    wide<T> total{};
    for (i64 e = 0; e < count; e += L) {
      const wide<T> power = exp_of<T, L>(load<T>(s + e) - base);
      total += power;
      save<T>(s + e, power);
    }
    row.add_to_total(sum_of<T, L>(total));
  }
}

template <class S, class Pattern>
void fusedmm(const Fusedmm<S, Pattern>& o, int threads) {
  using T = computed_t<S>;
  constexpr i64 L = kLanesOf<T>;
  const PatternPlan& plan = *o.plan;
  const Operand<T> C = whole_registers<T>(o.C, o.m, o.k, 0, 0, threads);
  const Operand<T> B = whole_registers<T>(o.B, o.n, o.k, plan.entries, 1, threads);
  const Operand<T> D =
      o.same_operand ? B : whole_registers<T>(o.D, o.n, o.p, plan.entries, 3, threads);
  const i64 registers = (o.k + L - 1) / L, width = (o.p + L - 1) / L * L;
  const i64 pitch = RowSum<T>::size(width);
  const auto at = [=](T* rows, i64 i) { return RowSum<T>(rows + i * pitch, width); };
  const auto finish = [&](const RowSum<T>& row, i64 i) {
    const T *const sum = row.value(), total = sum[width];
    const T factor = o.edge == Edge::softmax ? share_of_total(total) : T(1);
    for (i64 j = 0; j < o.p; ++j)
      narrow(factor * sum[j], o.E(i, j));
    if (o.log_totals)
      o.log_totals[i] = log_of_total(row.base(), total);
  };
  T* const slots = workspace<T>(4, plan.slots * pitch);

  with_registers(registers, [&](auto held) {
    plan.for_parts(threads, [&](const Part& part) {
      // Without panels a row is finished before the next one begins.
      const bool gathers = plan.has_panels() && part.slot < 0;
      const i64 rows = gathers ? part.last - part.first : 1;
      T* const sums = part.slot >= 0 ? slots + part.slot * pitch : workspace<T>(5, rows * pitch);
      for (i64 i = 0; i < rows; ++i)
        at(sums, i).clear();
      T* const registers_of_program =
          o.function ? workspace<T>(6, o.function->registers()) : nullptr;
      plan.for_segments(
          part, o.pattern.ptr,
          [&](i64 row, i64 begin, i64 end) {
            const auto columns = o.pattern.columns(row);
            const RowSum<T> sum = at(sums, gathers ? row - part.first : 0);
            const HeldRow<T, decltype(held)::value> c(C.row(row), registers);
            for (i64 from = begin; from < end; from += kEdgeChunk) {
              const i64 count = std::min(kEdgeChunk, end - from);
              alignas(64) T s[kEdgeChunk + L];
              c.all_dots(B, columns + from, count, s);
              for (i64 e = 0; e < count; ++e)
                s[e] *= o.alpha;
              if (o.values)
                for (i64 e = 0; e < count; ++e)
                  s[e] *= static_cast<T>(widen(o.values[from + e]));
              if (o.function) {
                o.function->run(registers_of_program, row, columns + from, from, count, s);
                std::copy_n(o.function->output(registers_of_program, 0), count, s);
              }
              std::fill_n(s + count, L, -std::numeric_limits<T>::infinity());
              T* const rows_of_weights = sum.before(count);
              weigh(o.edge, count, s, sum);
              add_rows<8>(D, columns + from, s, count, i64(0), width, rows_of_weights);
            }
            if (part.slot < 0 && !gathers) {
              finish(sum, row);
              sum.clear();
            }
          },
          [&](i64 row, i64 entry) {
            o.pattern.prefetch(entry);
            prefetch_row(C.row(row), o.k);
          });
      if (gathers)
        for (i64 row = part.first; row < part.last; ++row)
          finish(at(sums, row - part.first), row);
    });
  });

  for (const LongRow& cut : plan.long_rows) {
    const RowSum<T> first = at(slots, cut.first_slot);
    for (i64 slot = cut.first_slot + 1; slot < cut.last_slot; ++slot)
      first.merge(at(slots, slot));
    finish(first, cut.row);
  }
}

// The products of all types with lists of columns are compiled in fusedmm.cpp, and with intervals
// in mask_products.cpp: a unit takes 20 s for them.
#define WL_FUSEDMM_OF(PREFIX, PATTERN, I)                                                          \
  PREFIX template void fusedmm(const Fusedmm<half, PATTERN<I>>&, int);                             \
  PREFIX template void fusedmm(const Fusedmm<bfloat, PATTERN<I>>&, int);                           \
  PREFIX template void fusedmm(const Fusedmm<float, PATTERN<I>>&, int);                            \
  PREFIX template void fusedmm(const Fusedmm<double, PATTERN<I>>&, int);

WL_FUSEDMM_OF(extern, Listed, i32)
WL_FUSEDMM_OF(extern, Listed, i64)
WL_FUSEDMM_OF(extern, Intervals, i32)
WL_FUSEDMM_OF(extern, Intervals, i64)

} // namespace wl
