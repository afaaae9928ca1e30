// The product with a packed matrix with columns numbered by decreasing count of entries. The
// elements of x of the first columns, which contain most entries of a power-law graph, are kept in
// the shared memory of every multiprocessor.
//
// There is one block of 1024 work-items per multiprocessor; slices, the longest first, are assigned
// to the multiprocessors in turn. On an H200 with 24,000 columns of float64 (188 KB) an R-MAT graph
// of 22.7 M entries takes 103 microseconds; with 20,000 columns 107, with 28,000 125 (no part is
// left for L1), and 144 without. With a C++ conditional instead of two predicated loads it takes
// 175.
#pragma once
#include "simt/spmv.hpp"

namespace wl {

// x[c] from shared memory if c < cached, else from global memory; 0 for padding (c < 0).
WL_DEVICE double cached_or_loaded(int c, int cached, unsigned shared, const double* x) {
  double value;
  asm volatile("{.reg .pred p, q;\n"
               " setp.lt.u32 p, %1, %2;\n"
               " setp.ge.s32 q, %1, %2;\n"
               " mov.f64 %0, 0d0000000000000000;\n"
               " @p ld.shared.f64 %0, [%3];\n"
               " @q ld.global.nc.f64 %0, [%4];}"
               : "=&d"(value)
               : "r"(c), "r"(cached), "r"(shared + c * 8), "l"(x + c));
  return value;
}
WL_DEVICE float cached_or_loaded(int c, int cached, unsigned shared, const float* x) {
  float value;
  asm volatile("{.reg .pred p, q;\n"
               " setp.lt.u32 p, %1, %2;\n"
               " setp.ge.s32 q, %1, %2;\n"
               " mov.f32 %0, 0f00000000;\n"
               " @p ld.shared.f32 %0, [%3];\n"
               " @q ld.global.nc.f32 %0, [%4];}"
               : "=&f"(value)
               : "r"(c), "r"(cached), "r"(shared + c * 4), "l"(x + c));
  return value;
}

template <class T>
WL_DEVICE void sell_cached(const item& it, i64 lanes, i64 cached, const i64* slice_ptr,
                           const i32* codes, const T* values, const i32* target, const T* x,
                           mat<T> y, T alpha, T beta, T* partial) {
  constexpr int ahead = 4; // 3 to 5 were equal, 8 was 2 % slower
  extern __shared__ __align__(16) unsigned char bytes[];
  T* const kept = reinterpret_cast<T*>(bytes);
  for (i64 i = it.thread(); i < cached; i += WL_BLOCK)
    kept[i] = x[i];
  it.barrier();
  const unsigned shared = unsigned(__cvta_generic_to_shared(kept));
  const int few = int(cached);
  const i64 slices = (lanes + WL_WARP - 1) / WL_WARP, step = it.blocks() * (WL_BLOCK / WL_WARP);
  for (i64 s = wave_of(it) * it.blocks() + it.block(); s < slices; s += step) {
    const i64 base = slice_ptr[s], v = s * WL_WARP + lane_of(it);
    const int width = int((slice_ptr[s + 1] - base) / WL_WARP);
    const i32* const code = codes + base + lane_of(it);
    const T* const value = values + base + lane_of(it);
    T sum{};
    i32 next_code[ahead];
    T next_value[ahead];
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      next_code[u] = u < width ? read_once(code + u * WL_WARP) : -1;
      next_value[u] = u < width ? read_once(value + u * WL_WARP) : T(0);
    }
    for (int j = 0; j < width; j += ahead) {
      T xs[ahead], now[ahead];
#pragma unroll
      for (int u = 0; u < ahead; ++u) {
        xs[u] = cached_or_loaded(next_code[u], few, shared, x);
        now[u] = next_value[u];
      }
#pragma unroll
      for (int u = 0; u < ahead; ++u) {
        const int at = j + ahead + u;
        next_code[u] = at < width ? read_once(code + at * WL_WARP) : -1;
        next_value[u] = at < width ? read_once(value + at * WL_WARP) : T(0);
      }
#pragma unroll
      for (int u = 0; u < ahead; ++u)
        sum += now[u] * xs[u];
    }
    if (v >= lanes)
      continue;
    const i32 row = target[v];
    if (row < 0)
      partial[-1 - row] = sum;
    else
      store(y(row, 0), sum, alpha, beta);
  }
}

} // namespace wl
