// The functions of SYCL compilers: helpers that the kernels of this folder share, and the functions
// that backends/cpu requires of a backend.
#pragma once
#include "simt/lanes.hpp"
#include "simt/narrow.hpp"

// The driver's compiler vectorizes over work-items, and no loop within a work-item: short loops are
// unrolled.
#define WL_SIMD _Pragma("unroll")
#define WL_UNROLL _Pragma("unroll")
#define WL_VECTORIZED
#define WL_SUM_OF_LANES(sum)
#define WL_INDEPENDENT
#define WL_IN_REGISTER(pointer)
#define WL_NOINLINE

namespace wl {

// Bytes of a vector; on processors with narrower registers the driver's compiler splits it.
constexpr int VECTOR_BYTES = 64;

// Columns with sums that stay in registers together. More take longer to compile.
constexpr int WIDEST_TILE = 8;

// Independent sums of a row: with four, the 7-point stencil on 100^3 takes 1.1 times as long.
constexpr int ROW_SUMS = 2;

// Whether the compiler vectorizes a loop with a sum.
constexpr bool SUMS_LANES = false;

// Padded rows that advance together: their sums stay in registers. The 7-point stencil on 100^3
// takes 4.9 ms with 16 and 7.1 with 512 (November 2026, two cores of a Xeon).
constexpr int PADDED_ROWS = 16;

// sum += a b. The compiler of the CPU driver (2026.2) crashes when it vectorizes loops that add up
// products of complex numbers (of floats; for processors without AVX-512 of doubles too). A fence
// of the single work-item prevents the vectorization and costs nothing else.
template <class T>
WL_DEVICE void multiply_add(T& sum, T a, T b) {
  sum += a * b;
  if constexpr (WL_BLOCK == 1 && !same<T, real_t<T>>::value)
    sycl::atomic_fence(sycl::memory_order::acq_rel, sycl::memory_scope::work_item);
}

// Prefetches the cache lines of eight elements; past the end of an array this is harmless. SYCL's
// own prefetch does nothing on CPU devices, but their drivers accept assembly: on two cores of an
// EPYC (Zen 4) the time of the 7-point stencil decreases from 2.24 ms to 1.90.
template <class T>
WL_DEVICE void prefetch_eight(const T* address) {
#if WL_X86
  for (int byte = 0; byte < int(8 * sizeof(T)); byte += 64)
    asm volatile("prefetcht0 (%0)" ::"r"(reinterpret_cast<const char*>(address) + byte));
#endif
}

// Whether two arrays of integers have the same numbers.
template <class I>
WL_DEVICE bool all_equal(const I* a, const I* b, i64 count) {
  for (i64 i = 0; i < count; ++i)
    if (a[i] != b[i])
      return false;
  return true;
}

// No signal reaches a kernel that runs on a device.
WL_DEVICE constexpr bool interrupted() { return false; }

// The destination of the sums of rows in one column: y = alpha sum + beta y. If beta is 0, a local
// zero replaces y: the compiler would turn a branch into a load that is always executed and waited
// for.
template <class T>
struct one_column {
  T* y;
  i64 ld;
  const T* old;
  i64 old_ld;
  T alpha, beta;

  WL_DEVICE one_column(mat<T> of_y, T a, T b, const T* zero)
      : y(of_y.data), ld(of_y.ld), old(b == T(0) ? zero : of_y.data),
        old_ld(b == T(0) ? 0 : of_y.ld), alpha(a), beta(b) {}

  WL_DEVICE void put(i64 row, T sum) const { y[row * ld] = alpha * sum + beta * old[row * old_ld]; }
};

// The same for beta = 0 and a contiguous y, which solvers and most products have. Without loads of
// old values and of strides the time of the 7-point stencil on 100^3 in float32 decreases from 3.75
// ms to 3.36, and of the 27-point stencil on 60^3 from 2.54 to 2.27 (November 2026, two cores of an
// EPYC Zen 4).
template <class T>
struct plain_column {
  T* y;
  T alpha;
  WL_DEVICE void put(i64 row, T sum) const { y[row] = alpha * sum; }
};

// Calls body(column) with the type of column that fits y. Complex numbers, which need more
// arithmetic, have only one type: another one would take one more second to compile.
template <class T, class Body>
WL_DEVICE void with_column(mat<T> y, T alpha, T beta, const Body& body) {
  if constexpr (same<T, real_t<T>>::value)
    if (y.ld == 1 && beta == T(0)) {
      body(plain_column<T>{y.data, alpha});
      return;
    }
  const T zero{};
  body(one_column<T>(y, alpha, beta, &zero));
}

template <class T, class Body>
WL_DEVICE void with_column(T* y, T alpha, T beta, const Body& body) {
  with_column(mat<T>{y, 1}, alpha, beta, body);
}

} // namespace wl
