// What the SpMV kernels of this folder share: arithmetic, the store, prefetch and several columns.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "raised.hpp"

namespace wl {

using i64 = long long;

// Below this many entries a parallel region (7 microseconds with passive waiting) costs more than
// it saves.
constexpr i64 kSerialEntries = 30000;

namespace detail {

template <class T>
inline void multiply_add(T& acc, T a, T b) {
  acc += a * b;
}

// Written out: operator* of std::complex tests for NaN and calls __muldc3, which also keeps the
// loop around it from being vectorised.
template <class R>
inline void multiply_add(std::complex<R>& acc, std::complex<R> a, std::complex<R> b) {
  acc = {acc.real() + (a.real() * b.real() - a.imag() * b.imag()),
         acc.imag() + (a.real() * b.imag() + a.imag() * b.real())};
}

// y = alpha * sum + beta * y, where beta == 0 never reads y: it may hold NaN, or nothing yet.
template <class T>
inline void update(T& y, T sum, T alpha, T beta) {
  T result(0);
  multiply_add(result, alpha, sum);
  if (!(beta == T(0)))
    multiply_add(result, beta, y);
  y = result;
}

// Asks for the cache lines of eight elements; past the end of an array this is harmless.
template <class T>
inline void prefetch_eight(const T* address) {
  for (std::size_t byte = 0; byte < 8 * sizeof(T); byte += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(address) + byte, 0, 3);
}

// Calls body(std::integral_constant<int, W>, first) on tiles that cover columns [0, k), widest
// first: the sums of up to 16 columns stay in registers while the entries of a row are read.
template <int W = 16, class Body>
inline void for_column_tiles(i64 k, Body&& body, i64 first = 0) {
  for (; first + W <= k; first += W)
    body(std::integral_constant<int, W>{}, first);
  if constexpr (W > 1)
    for_column_tiles<W / 2>(k, body, first);
}

// y[0:k] = alpha * sum_e data[e * stride] * x[column(e) * ldx + 0:k] + beta * y[0:k], e < n.
template <class S, class T, class Column>
inline void row_times_columns(i64 n, const S* data, i64 stride, Column&& column, const T* x,
                              i64 ldx, T* y, i64 k, T alpha, T beta) {
  for_column_tiles(k, [&](auto width, i64 first) {
    constexpr int W = decltype(width)::value;
    T sums[W] = {};
    for (i64 e = 0; e < n; ++e) {
      const T value = raised<T>(data[e * stride]);
      const T* x_row = x + static_cast<i64>(column(e)) * ldx + first;
#pragma omp simd
      for (int w = 0; w < W; ++w)
        multiply_add(sums[w], value, x_row[w]);
    }
    for (int w = 0; w < W; ++w)
      update(y[first + w], sums[w], alpha, beta);
  });
}

} // namespace detail
} // namespace wl
