// The arithmetic of g++ that the bodies of backends/cpu ask of a backend: how it adds up products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "omp/half.hpp"
#include "omp/interruption.hpp"
#include "unified/types.hpp"

// Pragmas before a loop over lanes of a vector register, over any length, with a sum, unrolled, and
// with iterations that write memory that no other iteration reads.
#define WL_SIMD _Pragma("omp simd")
#define WL_VECTORIZED _Pragma("omp simd")
#define WL_PRAGMA(words) _Pragma(#words)
#define WL_SUM_OF_LANES(sum) WL_PRAGMA(omp simd reduction(+ : sum))
#define WL_UNROLL _Pragma("GCC unroll 32")
#if defined(__clang__)
#define WL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WL_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Keeps a pointer in a register of its own. Pointers that are computed side by side g++ computes in
// a vector register, and takes them out of it one by one: 5 ns for a run of rows of 24.
#define WL_IN_REGISTER(pointer) asm("" : "+r"(pointer))

#define WL_NOINLINE [[gnu::noinline]]

namespace wl {

// Bytes of a vector register.
#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

// Columns with sums that stay in registers together.
constexpr int WIDEST_TILE = 16;

// Independent sums of a row.
constexpr int ROW_SUMS = 4;

// Whether a loop that adds up becomes one over vector registers.
constexpr bool SUMS_LANES = true;

// Padded rows that advance together: their sums are in the first-level cache, and each entry of
// theirs is a page of neighbours.
constexpr int PADDED_ROWS = 512;

// A value that is stored in S, in the type T that is computed in: every value of S is one of T.
template <class T, class S>
inline T raised(S v) {
  if constexpr (std::is_same_v<S, T>)
    return v;
  else if constexpr (std::is_same_v<T, real_t<T>>)
    return T(widen(v));
  else
    return {v.re, v.im};
}

template <class T>
inline void multiply_add(T& sum, T a, T b) {
  sum += a * b;
}

// Asks for the cache lines of eight elements; past the end of an array this is harmless.
template <class T>
WL_DEVICE void prefetch_eight(const T* address) {
  for (std::size_t byte = 0; byte < 8 * sizeof(T); byte += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(address) + byte, 0, 3);
}

// Whether two arrays of integers have the same numbers. A loop with an exit costs sums of random
// matrices 1.05 times the time.
template <class I>
inline bool all_equal(const I* a, const I* b, i64 count) {
  return std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(I)) == 0;
}

template <class T>
WL_DEVICE void update(T& y, T sum, T alpha, T beta);

// Where the sums of rows go in one column: y = alpha sum + beta y.
template <class T>
struct updated_column {
  mat<T> y;
  T alpha, beta;
  void put(i64 row, T sum) const { update(y(row, 0), sum, alpha, beta); }
};

// The same of a column without gaps.
template <class T>
struct updated_array {
  T* y;
  T alpha, beta;
  void put(i64 row, T sum) const { update(y[row], sum, alpha, beta); }
};

// The same where beta is 0: a test of beta in each row costs 0.15 of the time of 7 entries.
template <class T>
struct overwritten_array {
  T* y;
  T alpha;
  void put(i64 row, T sum) const { update(y[row], sum, alpha, T(0)); }
};

// Calls body(column) with the column that y is, which body takes by value: else g++ believes that a
// store to y may change alpha, and reads it again for each row.
template <class T, class Body>
inline void with_column(T* y, T alpha, T beta, const Body& body) {
  if (beta == T(0))
    return body(overwritten_array<T>{y, alpha});
  body(updated_array<T>{y, alpha, beta});
}

template <class T, class Body>
inline void with_column(mat<T> y, T alpha, T beta, const Body& body) {
  if (y.ld == 1)
    return with_column(y.data, alpha, beta, body);
  body(updated_column<T>{y, alpha, beta});
}

} // namespace wl
