// HIPRTC's declarations before a source, as far as the dialect uses them, for a clang that comes
// without ROCm's headers. Written down from HIP's documentation; only its compiler reads it.
#pragma once

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
struct wl_thread_index {
  __declspec(property(get = get_x)) unsigned x;
  __device__ unsigned get_x() const { return __builtin_amdgcn_workitem_id_x(); }
};
struct wl_block_index {
  __declspec(property(get = get_x)) unsigned x;
  __device__ unsigned get_x() const { return __builtin_amdgcn_workgroup_id_x(); }
};
struct wl_grid_size {
  __declspec(property(get = get_x)) unsigned x;
  __device__ unsigned get_x() const {
    return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
  }
};
static const __device__ wl_thread_index threadIdx;
static const __device__ wl_block_index blockIdx;
static const __device__ wl_grid_size gridDim;

__device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ __forceinline__ void __threadfence() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}
// A lane's number times 4 is its address.
__device__ __forceinline__ int __shfl(int word, int lane) {
  return __builtin_amdgcn_ds_bpermute(lane << 2, word);
}
__device__ __forceinline__ unsigned long long __ballot(int vote) {
#if __AMDGCN_WAVEFRONT_SIZE__ == 64
  return __builtin_amdgcn_ballot_w64(vote != 0);
#else
  return __builtin_amdgcn_ballot_w32(vote != 0);
#endif
}
__device__ __forceinline__ int atomicAdd(int* place, int value) {
  return __hip_atomic_fetch_add(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__device__ __forceinline__ unsigned atomicOr(unsigned* place, unsigned bits) {
  return __hip_atomic_fetch_or(place, bits, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__device__ __forceinline__ int atomicMin(int* place, int value) {
  return __hip_atomic_fetch_min(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class V>
__device__ __forceinline__ V atomicCAS(V* place, V expected, V desired) {
  __hip_atomic_compare_exchange_strong(place, &expected, desired, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
__device__ __forceinline__ float sqrtf(float v) { return __builtin_sqrtf(v); }
__device__ __forceinline__ double sqrt(double v) { return __builtin_sqrt(v); }
__device__ __forceinline__ float expf(float v) { return __builtin_expf(v); }
extern "C" __device__ double __ocml_exp_f64(double); // of ROCm's library, linked by who runs it
__device__ __forceinline__ double exp(double v) { return __ocml_exp_f64(v); }

// Functions of ROCm's library too.
#define WL_OCML(name, suffix, type, function)                                                      \
  extern "C" __device__ type __ocml_##name##_f##suffix(type);                                      \
  __device__ __forceinline__ type function(type v) { return __ocml_##name##_f##suffix(v); }
#define WL_OCML_OF_TWO(name, suffix, type, function)                                               \
  extern "C" __device__ type __ocml_##name##_f##suffix(type, type);                                \
  __device__ __forceinline__ type function(type v, type w) {                                       \
    return __ocml_##name##_f##suffix(v, w);                                                        \
  }
WL_OCML(log, 32, float, logf)
WL_OCML(log, 64, double, log)
WL_OCML(sin, 32, float, sinf)
WL_OCML(sin, 64, double, sin)
WL_OCML(cos, 32, float, cosf)
WL_OCML(cos, 64, double, cos)
WL_OCML(tanh, 32, float, tanhf)
WL_OCML(tanh, 64, double, tanh)
WL_OCML(log1p, 32, float, log1pf)
WL_OCML(log1p, 64, double, log1p)
WL_OCML_OF_TWO(pow, 32, float, powf)
WL_OCML_OF_TWO(pow, 64, double, pow)
WL_OCML_OF_TWO(atan2, 32, float, atan2f)
WL_OCML_OF_TWO(atan2, 64, double, atan2)
