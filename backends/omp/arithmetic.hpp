// The functions that backends/cpu requires of a backend, for g++: they determine how products are
// added up.
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

// Keeps a pointer in a separate register. g++ computes several pointers together in a vector
// register and extracts them one by one, which costs 5 ns for a run of rows of 24 entries.
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

// The number of padded rows that advance together: their sums are in the first-level cache, and the
// entries of one index are contiguous.
constexpr int PADDED_ROWS = 512;

// Converts a value that is stored in S to the type T of the computation. The conversion is exact.
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

// Prefetches the cache lines of eight elements; past the end of an array this is harmless.
template <class T>
WL_DEVICE void prefetch_eight(const T* address) {
  for (std::size_t byte = 0; byte < 8 * sizeof(T); byte += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(address) + byte, 0, 3);
}

// Whether two arrays of integers are equal. With an early exit from the loop, sums of random
// matrices take 1.05 times as long.
template <class I>
inline bool all_equal(const I* a, const I* b, i64 count) {
  return std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(I)) == 0;
}

template <class T>
WL_DEVICE void update(T& y, T sum, T alpha, T beta);

// The destination of the sums of rows in one column: y = alpha sum + beta y.
template <class T>
struct updated_column {
  mat<T> y;
  T alpha, beta;
  void put(i64 row, T sum) const { update(y(row, 0), sum, alpha, beta); }
};

// The destination for a contiguous column.
template <class T>
struct updated_array {
  T* y;
  T alpha, beta;
  void put(i64 row, T sum) const { update(y[row], sum, alpha, beta); }
};

// The destination if beta is 0: a test of beta in each row costs 0.15 of the time of 7 entries.
template <class T>
struct overwritten_array {
  T* y;
  T alpha;
  void put(i64 row, T sum) const { update(y[row], sum, alpha, T(0)); }
};

// Calls body(column) with the type of column that fits y. body takes it by value: otherwise g++
// assumes that a store to y may change alpha, and reads alpha again for each row.
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
