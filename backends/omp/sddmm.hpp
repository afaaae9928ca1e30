// S_ij = alpha <C_i, B_j> [A_ij] + beta S_ij on the pattern of A; C and B dense and row-major.
//
// A row of C stays in registers while it is multiplied by several rows of B together: their
// reductions are combined.
#pragma once

#include "omp/operand.hpp"
#include "omp/pattern_plan.hpp"
#include "unified/long_sums.hpp"

namespace wl {

// Products that are summed at once: as many as hide the latency of an addition and leave registers
// for the row of C.
constexpr int kDots = VECTOR_BYTES == 64 ? 8 : 4;

// B is copied to whole registers on huge pages if its rows are used at least this often; see
// spmm.hpp. 2048 x 2048, 20 entries a row, 128, 256 and 512 columns, two threads of a Zen 4,
// microseconds (2026-11-22): in place 146, 305, 631; copied 229, 868, 937.
constexpr i64 kDotPackReuse = 64;
constexpr i64 kDotPackBytes = i64(1) << 18;

// Rows that are aligned to a register, as PyTorch's are, are read in place up to this size: a copy
// would gain only huge pages. NumPy's rows begin 16 bytes after a register boundary, and each of
// their loads reads two cache lines. 64 columns, time copied by time in place, two threads of a Zen
// 4 (2026-11-23), fusedmm: for 0.5 MB 1.05 to 1.09 if they are aligned, 0.88 to 0.91 if not; for 4
// MB 1.02 and 0.78.
constexpr i64 kAlignedBytes = i64(1) << 22;

// A row of an operand: in R registers, or in memory where R is 0.
template <class T, int R>
class HeldRow {
public:
  HeldRow(const T* row, i64 registers) : row_(row), registers_(registers) {
    for (int r = 0; r < R; ++r)
      held_[r] = load<T>(row + r * kLanesOf<T>);
  }

  // sums[g] = <row, B[columns[g]]>, g < G, over the registers [begin, end) where R is 0. A few
  // products are each summed in several registers, so that additions wait for nothing there either.
  template <int G, class Columns>
  [[gnu::always_inline]] void dots(const Operand<T>& B, Columns columns, i64 begin, i64 end,
                                   T* sums) const {
    constexpr int L = kLanesOf<T>;
    constexpr int U = G < 4 && R != 1 ? 4 / G : 1;
    wide<T> part[U][G] = {};
    const T* b[G];
    for (int g = 0; g < G; ++g)
      b[g] = B.row(columns[g]);
    const auto add = [&](const wide<T>& c, i64 r, wide<T>(&to)[G]) {
#pragma GCC unroll 8
      for (int g = 0; g < G; ++g)
        to[g] += c * load<T>(b[g] + r * L);
    };
    if constexpr (R > 0) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        add(held_[r], r, part[r % U]);
    } else {
      i64 r = begin;
      for (; r + U <= end; r += U)
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u)
          add(load<T>(row_ + (r + u) * L), r + u, part[u]);
      if constexpr (U > 1)
        for (; r < end; ++r)
          add(load<T>(row_ + r * L), r, part[0]);
    }
#pragma GCC unroll 4
    for (int u = 1; u < U; ++u)
      for (int g = 0; g < G; ++g)
        part[0][g] += part[u][g];
    save_sums<T, L, G>(sums, part[0]);
  }

  template <class Columns>
  void all_dots(const Operand<T>& B, Columns columns, i64 count, T* sums) const {
    if constexpr (R == 0 && sums_in_pieces<T>)
      if (registers_ > PIECE_OF_SUM)
        return long_dots(B, columns, count, sums);
    dots_of(B, columns, count, 0, registers_, sums);
  }

private:
  template <class Columns>
  [[gnu::always_inline]] void dots_of(const Operand<T>& B, Columns columns, i64 count, i64 begin,
                                      i64 end, T* sums) const {
    i64 e = 0;
    for (; e + kDots <= count; e += kDots)
      dots<kDots>(B, columns + e, begin, end, sums + e);
    if (kDots > 4 && e + 4 <= count) {
      dots<4>(B, columns + e, begin, end, sums + e);
      e += 4;
    }
    for (; e + 2 <= count; e += 2)
      dots<2>(B, columns + e, begin, end, sums + e);
    if (e < count)
      dots<1>(B, columns + e, begin, end, sums + e);
  }

  // The product of rows of very many registers: see long_sums.hpp.
  template <class Columns>
  WL_NOINLINE void long_dots(const Operand<T>& B, Columns columns, i64 count, T* sums) const {
    for (i64 e = 0; e < count; e += kDots) {
      const i64 some = std::min(i64(kDots), count - e);
      long_sum<T> totals[kDots] = {};
      for (i64 begin = 0; begin < registers_; begin += PIECE_OF_SUM) {
        T part[kDots];
        dots_of(B, columns + e, some, begin, std::min(begin + PIECE_OF_SUM, registers_), part);
        for (i64 g = 0; g < some; ++g)
          totals[g].add(part[g]);
      }
      for (i64 g = 0; g < some; ++g)
        sums[e + g] = totals[g].value();
    }
  }

  wide<T> held_[R > 0 ? R : 1];
  const T* row_;
  i64 registers_;
};

// Calls body(std::integral_constant<int, R>) with the registers that a row of `registers` is held
// in.
template <class Body>
inline void with_registers(i64 registers, Body&& body) {
  switch (registers) {
  case 1:
    return body(std::integral_constant<int, 1>());
  case 2:
    return body(std::integral_constant<int, 2>());
  case 4:
    return body(std::integral_constant<int, 4>());
  case 8:
    return body(std::integral_constant<int, 8>());
  default:
    return body(std::integral_constant<int, 0>());
  }
}

// An operand in whole registers: where it is if it can be read there, else in `buffer` of the
// workspace.
template <class T, class S>
Operand<T> whole_registers(const mat<const S>& from, i64 rows, i64 columns, i64 uses, int buffer,
                           int threads) {
  constexpr i64 L = kLanesOf<T>;
  const i64 width = (columns + L - 1) / L * L;
  if constexpr (same<S, T>::value) {
    const bool aligned =
        reinterpret_cast<std::uintptr_t>(from.data) % VECTOR_BYTES == 0 && from.ld % L == 0;
    const bool large = rows * columns * i64(sizeof(T)) > (aligned ? kAlignedBytes : kDotPackBytes);
    if (width == columns && !(large && uses >= kDotPackReuse * rows))
      return {from.data, from.ld};
  }
  return pack(from.data, from.ld, rows, columns, width, workspace<T>(buffer, rows * width),
              threads);
}

template <class S, class I>
struct Sddmm {
  using T = computed_t<S>;
  i64 m, n, k;
  const I *indptr, *indices;
  const S* values; // nullptr where only the pattern counts
  mat<const S> C, B;
  S* out;
  T alpha, beta;
  const PatternPlan* plan;
};

template <class S, class I>
void sddmm(const Sddmm<S, I>& o, int threads) {
  using T = computed_t<S>;
  constexpr i64 kChunk = 64;
  const PatternPlan& plan = *o.plan;
  // A row of C is read once per panel: it is copied only to be widened or padded.
  const Operand<T> C = whole_registers<T>(o.C, o.m, o.k, 0, 0, threads);
  const Operand<T> B = whole_registers<T>(o.B, o.n, o.k, plan.entries, 1, threads);
  const i64 registers = (o.k + kLanesOf<T> - 1) / kLanesOf<T>;
  with_registers(registers, [&](auto held) {
    plan.for_parts(threads, [&](const Part& part) {
      plan.for_segments(
          part, o.indptr,
          [&](i64 row, i64 begin, i64 end) {
            if (begin == end)
              return;
            const HeldRow<T, decltype(held)::value> c(C.row(row), registers);
            alignas(64) T dots[kChunk];
            for (i64 from = begin; from < end; from += kChunk) {
              const i64 count = std::min(kChunk, end - from);
              c.all_dots(B, o.indices + from, count, dots);
              S* const out = o.out + from;
              const S* const values = o.values ? o.values + from : nullptr;
              for (i64 e = 0; e < count; ++e) {
                T result = o.alpha * dots[e];
                if (values)
                  result *= static_cast<T>(widen(values[e]));
                if (!(o.beta == 0))
                  result += o.beta * static_cast<T>(widen(out[e]));
                narrow(result, out[e]);
              }
            }
          },
          [&](i64 row, i64 entry) {
            prefetch_some(o.indices + entry);
            prefetch_row(C.row(row), o.k);
          });
    });
  });
}

} // namespace wl
