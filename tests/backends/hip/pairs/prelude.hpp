// A wave of 64 lanes on an NVIDIA GPU: two warps with a barrier of their own. The kernels' text is
// the dialect of HIP, unchanged; this file defines the functions by which lanes exchange data, and
// clang's own functions.
#pragma once
#define __builtin_popcountll __popcll
#define __builtin_clzll __clzll
#define __builtin_ctzll(bits) (__ffsll((long long)(bits)) - 1)
#define __builtin_amdgcn_wave_barrier wl_pair_barrier
#define __builtin_amdgcn_fence(order, scope) __threadfence_block()
#define __shfl wl_pair_shfl
#define __ballot wl_pair_ballot

// Values that are rounded before a sum takes them: the dialect says so by a pragma that NVRTC does
// not know.
namespace wl {
__device__ __forceinline__ float rounded_product(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double rounded_product(double a, double b) { return __dmul_rn(a, b); }
} // namespace wl

// A block has 16 barriers; number 0 is __syncthreads.
__device__ __forceinline__ void wl_pair_barrier() {
  const unsigned pair = threadIdx.x / 64;
  asm volatile("barrier.sync %0, 64;" ::"r"(pair + 1) : "memory");
}

__device__ __forceinline__ int wl_pair_shfl(int word, int from) {
  __shared__ int words[1024];
  words[threadIdx.x] = word;
  wl_pair_barrier();
  const int taken = words[threadIdx.x / 64 * 64 + from];
  wl_pair_barrier();
  return taken;
}

__device__ __forceinline__ unsigned long long wl_pair_ballot(int vote) {
  __shared__ unsigned halves[32];
  const unsigned mine = __ballot_sync(0xffffffffu, vote);
  if (threadIdx.x % 32 == 0)
    halves[threadIdx.x / 32] = mine;
  wl_pair_barrier();
  const unsigned low = halves[threadIdx.x / 64 * 2], high = halves[threadIdx.x / 64 * 2 + 1];
  wl_pair_barrier();
  return (unsigned long long)(high) << 32 | low;
}
