// The operands that all products share: y = alpha A x + beta y.
#pragma once

#include "omp/call.hpp"

namespace wl {

// Below this many entries a parallel region (7 microseconds with passive waiting) costs more than
// it saves.
constexpr i64 kSerialEntries = 30000;

template <class T>
struct SpmvOperands {
  mat<const T> x;
  mat<T> y;
  i64 k;
  T alpha, beta;
};

// The arguments x, y, alpha and beta after a matrix of m rows and n columns.
template <class T>
SpmvOperands<T> spmv_operands(const Call& call, i64 m, i64 n) {
  Extent rows{m}, columns{n}, k;
  const mat<const T> x = call.block<const T>(1, columns, k);
  const mat<T> y = call.block<T>(2, rows, k);
  return {x, y, k, call.scalar<T>(3), call.scalar<T>(4)};
}

// The names of the arguments of every product.
inline constexpr const char* kSpmvNames[] = {"A", "x", "y", "alpha", "beta"};

// The rows and columns of a matrix argument.
struct Shape {
  i64 m, n;
  Shape(const Call& call, int at) {
    static const Name shape("shape");
    const Object held = call.member(at, shape);
    m = call.integer(PyTuple_GetItem(held.get(), 0));
    n = call.integer(PyTuple_GetItem(held.get(), 1));
  }
};

} // namespace wl
