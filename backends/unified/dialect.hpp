// The constructs in which the four compilers differ, for code without threads. This is the only
// header of this folder that depends on the compiler. The compiling backend defines WL_CUDA
// (NVRTC), WL_HIP (HIPRTC), WL_SYCL (the SYCL run-time compiler) or WL_LOCKSTEP (g++, an emulated
// wave); without any of them the backend is OpenMP. No standard header may be included: NVRTC and
// HIPRTC have none.
#pragma once

#if defined(WL_SYCL)
#include WL_SYCL_HEADER
#endif

#if defined(WL_CUDA) || defined(WL_HIP)
#define WL_DEVICE __device__ __forceinline__
#else
#define WL_DEVICE inline __attribute__((always_inline))
#endif

// A pair of numbers: GPUs load it in one access if it is aligned to its whole size. On the host
// NumPy aligns a complex array only to the size of a part, and g++ vectorizes copies of members but
// not of structures.
#if defined(WL_CUDA) || defined(WL_HIP) || defined(WL_SYCL) || defined(WL_LOCKSTEP)
#define WL_PAIR_ALIGNED(bytes) alignas(bytes)
#define WL_PAIR_COPIED(pair, first, second)
#else
#define WL_PAIR_ALIGNED(bytes)
#define WL_PAIR_COPIED(pair, first, second)                                                        \
  WL_DEVICE constexpr pair(const pair& o) : first(o.first), second(o.second) {}                    \
  WL_DEVICE constexpr pair& operator=(const pair& o) {                                             \
    return first = o.first, second = o.second, *this;                                              \
  }
#endif

namespace wl {

using u8 = unsigned char;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned;
using i64 = long long;
static_assert(sizeof(i64) == 8 && sizeof(i32) == 4, "widths of the index types");

#if defined(WL_CUDA) || defined(WL_HIP)
WL_DEVICE float square_root(float v) { return ::sqrtf(v); }
WL_DEVICE double square_root(double v) { return ::sqrt(v); }
WL_DEVICE float exponential(float v) { return ::expf(v); }
WL_DEVICE double exponential(double v) { return ::exp(v); }
WL_DEVICE float power(float v, float w) { return ::powf(v, w); }
WL_DEVICE double power(double v, double w) { return ::pow(v, w); }
WL_DEVICE float logarithm(float v) { return ::logf(v); }
WL_DEVICE double logarithm(double v) { return ::log(v); }
WL_DEVICE float sine(float v) { return ::sinf(v); }
WL_DEVICE double sine(double v) { return ::sin(v); }
WL_DEVICE float cosine(float v) { return ::cosf(v); }
WL_DEVICE double cosine(double v) { return ::cos(v); }
WL_DEVICE float hyperbolic_tangent(float v) { return ::tanhf(v); }
WL_DEVICE double hyperbolic_tangent(double v) { return ::tanh(v); }
WL_DEVICE float logarithm_after_one(float v) { return ::log1pf(v); }
WL_DEVICE double logarithm_after_one(double v) { return ::log1p(v); }
WL_DEVICE float angle(float v, float w) { return ::atan2f(v, w); }
WL_DEVICE double angle(double v, double w) { return ::atan2(v, w); }
WL_DEVICE void count_down(i32* counter) { atomicAdd(counter, -1); }
#elif defined(WL_SYCL)
WL_DEVICE float square_root(float v) { return sycl::sqrt(v); }
WL_DEVICE double square_root(double v) { return sycl::sqrt(v); }
WL_DEVICE float exponential(float v) { return sycl::exp(v); }
WL_DEVICE double exponential(double v) { return sycl::exp(v); }
WL_DEVICE float power(float v, float w) { return sycl::pow(v, w); }
WL_DEVICE double power(double v, double w) { return sycl::pow(v, w); }
WL_DEVICE float logarithm(float v) { return sycl::log(v); }
WL_DEVICE double logarithm(double v) { return sycl::log(v); }
WL_DEVICE float sine(float v) { return sycl::sin(v); }
WL_DEVICE double sine(double v) { return sycl::sin(v); }
WL_DEVICE float cosine(float v) { return sycl::cos(v); }
WL_DEVICE double cosine(double v) { return sycl::cos(v); }
WL_DEVICE float hyperbolic_tangent(float v) { return sycl::tanh(v); }
WL_DEVICE double hyperbolic_tangent(double v) { return sycl::tanh(v); }
WL_DEVICE float logarithm_after_one(float v) { return sycl::log1p(v); }
WL_DEVICE double logarithm_after_one(double v) { return sycl::log1p(v); }
WL_DEVICE float angle(float v, float w) { return sycl::atan2(v, w); }
WL_DEVICE double angle(double v, double w) { return sycl::atan2(v, w); }
WL_DEVICE void count_down(i32* counter) { // in local memory if a work-group solves one system
  sycl::atomic_ref<i32, sycl::memory_order::relaxed, sycl::memory_scope::device,
                   sycl::access::address_space::generic_space>(*counter)
      .fetch_sub(1);
}
#else
// One thread finishes all columns, so counting needs no atomic operation.
WL_DEVICE float square_root(float v) { return __builtin_sqrtf(v); }
WL_DEVICE double square_root(double v) { return __builtin_sqrt(v); }
WL_DEVICE float exponential(float v) { return __builtin_expf(v); }
WL_DEVICE double exponential(double v) { return __builtin_exp(v); }
WL_DEVICE float power(float v, float w) { return __builtin_powf(v, w); }
WL_DEVICE double power(double v, double w) { return __builtin_pow(v, w); }
WL_DEVICE float logarithm(float v) { return __builtin_logf(v); }
WL_DEVICE double logarithm(double v) { return __builtin_log(v); }
WL_DEVICE float sine(float v) { return __builtin_sinf(v); }
WL_DEVICE double sine(double v) { return __builtin_sin(v); }
WL_DEVICE float cosine(float v) { return __builtin_cosf(v); }
WL_DEVICE double cosine(double v) { return __builtin_cos(v); }
WL_DEVICE float hyperbolic_tangent(float v) { return __builtin_tanhf(v); }
WL_DEVICE double hyperbolic_tangent(double v) { return __builtin_tanh(v); }
WL_DEVICE float logarithm_after_one(float v) { return __builtin_log1pf(v); }
WL_DEVICE double logarithm_after_one(double v) { return __builtin_log1p(v); }
WL_DEVICE float angle(float v, float w) { return __builtin_atan2f(v, w); }
WL_DEVICE double angle(double v, double w) { return __builtin_atan2(v, w); }
WL_DEVICE void count_down(i32* counter) { --*counter; }
#endif

} // namespace wl
