// C = alpha A B + beta C: A in compressed rows, B and C dense and row-major.
//
// Row-split with explicit SIMD after Zubair and Bauinger (2023): a tile of a row of C stays in
// registers while the entries of the row are read once. B comes in column tiles that stay in the
// second-level cache.
#pragma once

#include <vector>

#include "operand.hpp"
#include "pattern_plan.hpp"

namespace wl {

// Columns of B that are packed together: 4 registers. 4096 x 4096, 10 %, 128 columns, one thread of
// a Granite Rapids: 32 columns 8.0 ms, 64 columns 7.3, 128 columns 10.9; not packed 16.5.
constexpr int kTileRegisters = 4;

// Registers of a tile where B is read in place.
constexpr int kDirectRegisters = 8;

// Packing pays where each row of B is used this often, and where B is larger than it can stay in
// place.
constexpr i64 kPackReuse = 8;
constexpr i64 kPackBytes = i64(1) << 19;

template <class S, class I>
struct SpmmCall {
  i64 m, n, k;
  const I *indptr, *indices;
  const S* values;
  mat<const S> B;
  mat<S> C;
  S alpha, beta; // of the computed type for 16-bit values
};

template <class S>
struct Factors {
  computed_t<S> alpha, beta;
};
template <class R>
struct Factors<complex<R>> {
  complex<R> alpha, beta;
};

// C_row = alpha sum + beta C_row for stored values of any kind.
template <class S, class F>
inline void finish_row(i64 columns, const computed_t<S>* sum, S* c, const F& f) {
  for (i64 j = 0; j < columns; ++j) {
    auto result = f.alpha * sum[j];
    if (!(f.beta == 0))
      result += f.beta * widen(c[j]);
    narrow(result, c[j]);
  }
}

template <class R, class F>
inline void finish_row(i64 columns, const R* sum, complex<R>* c, const F& f) {
  for (i64 j = 0; j < columns / 2; ++j)
    store(c[j], f.alpha * complex<R>(sum[2 * j], sum[2 * j + 1]) + complex<R>(0), complex<R>(1),
          complex<R>(0));
}
