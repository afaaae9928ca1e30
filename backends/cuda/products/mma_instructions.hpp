// Instructions of tensor cores from compute capability 8.0 on, and named barriers for warps of a
// block that do different work.
#pragma once
#include "simt/packs.hpp"

namespace wl {

// The shared memory that a launch allocates; rows are swizzled by address for wgmma.
#define WL_DYNAMIC_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]

WL_DEVICE u32 shared_offset(const void* pointer) { return u32(__cvta_generic_to_shared(pointer)); }

WL_DEVICE const unsigned char* shared_pointer(u32 offset) {
  return static_cast<const unsigned char*>(__cvta_shared_to_generic(offset));
}

// One of the sixteen named barriers of a block, at which `Threads` threads arrive; threads that
// call sync also wait.
template <int Threads>
WL_DEVICE void named_barrier_sync(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(Threads) : "memory");
}
template <int Threads>
WL_DEVICE void named_barrier_arrive(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(Threads) : "memory");
}

WL_DEVICE bool any_of_block(bool mine) { return __syncthreads_or(mine); }

// Adds 1 to a counter in shared memory; returns its value before.
WL_DEVICE int count_up(int* counter) { return atomicAdd(counter, 1); }

WL_DEVICE void copy_16_bytes(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
// The same if `there` is true, else zeros.
WL_DEVICE void copy_16_bytes_if(bool there, u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
}
WL_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all but the last `Groups` groups of copies.
template <int Groups>
WL_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}

// Loads four cores of 8 x 8 16-bit numbers; each lane gives the address of a row.
WL_DEVICE void load_cores(u32 (&b)[4], u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(row)
               : "memory");
}
// The same, each core transposed.
WL_DEVICE void load_cores_transposed(u32 (&b)[4], u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(row)
               : "memory");
}

// A core of 8 x 8 numbers, transposed; each lane holds two numbers of row lane / 4.
WL_DEVICE u32 transpose_core(u32 two) {
  u32 transposed;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(two));
  return transposed;
}

// 2^x; the result is 0 if it is below 2^-126.
WL_DEVICE float power_of_2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

WL_DEVICE float log_2(float x) {
  float logarithm;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(logarithm) : "f"(x));
  return logarithm;
}

// Two rounded numbers in one word.
template <class H>
WL_DEVICE u32 narrow_both(float low, float high);
template <>
WL_DEVICE u32 narrow_both<half>(float low, float high) {
  u32 word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
template <>
WL_DEVICE u32 narrow_both<bfloat>(float low, float high) {
  u32 word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// d (16 x 8) += a (16 x 16) b (16 x 8)
template <class H>
WL_DEVICE void add_product(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1);
#define WL_MMA(H, TYPE)                                                                            \
  template <>                                                                                      \
  WL_DEVICE void add_product<H>(float (&d)[4], const u32(&a)[4], u32 b0, u32 b1) {                 \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE                                     \
        ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                     \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                           \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                           \
  }
WL_MMA(half, "f16")
WL_MMA(bfloat, "bf16")
#undef WL_MMA

} // namespace wl
