// The instructions of backends/cuda/products/mma_instructions.hpp, as machine.cpp carries them out.
#pragma once
#include "simt/packs.hpp"

namespace wl {

static const lockstep::shared_place dynamic_shared{shared, sizeof shared};

#define WL_DYNAMIC_SHARED(name) unsigned char* const name = shared

WL_DEVICE u32 shared_offset(const void* pointer) {
  return u32(static_cast<const unsigned char*>(pointer) - shared);
}

WL_DEVICE const unsigned char* shared_pointer(u32 offset) { return shared + offset; }

template <int Threads>
WL_DEVICE void named_barrier_sync(int barrier) {
  lockstep::named_barrier_sync(barrier, Threads);
}
template <int Threads>
WL_DEVICE void named_barrier_arrive(int barrier) {
  lockstep::named_barrier_arrive(barrier, Threads);
}

WL_DEVICE bool any_of_block(bool mine) { return __syncthreads_or(mine); }

WL_DEVICE int count_up(int* counter) { return (*counter)++; }

WL_DEVICE void copy_16_bytes(u32 to, const void* from) { lockstep::copy_16_bytes(to, from); }
WL_DEVICE void copy_16_bytes_if(bool there, u32 to, const void* from) {
  lockstep::copy_16_bytes(to, there ? from : nullptr);
}
WL_DEVICE void commit_copies() { lockstep::commit_copies(); }
template <int Groups>
WL_DEVICE void wait_for_copies() {
  lockstep::wait_for_copies(Groups);
}

WL_DEVICE void load_cores(u32 (&b)[4], u32 row) { lockstep::load_cores(b, row, false); }
WL_DEVICE void load_cores_transposed(u32 (&b)[4], u32 row) { lockstep::load_cores(b, row, true); }

WL_DEVICE u32 transpose_core(u32 two) {
  const int lane = lockstep::thread() % 32, from = lane % 4 * 8 + lane / 8, odd = lane / 4 % 2;
  const u32 low = u32(lockstep::exchange(i32(two), from)),
            high = u32(lockstep::exchange(i32(two), from + 4));
  return (low >> 16 * odd & 0xffffu) | (high >> 16 * odd & 0xffffu) << 16;
}

WL_DEVICE float power_of_2(float x) { return __builtin_exp2f(x); }
WL_DEVICE float log_2(float x) { return __builtin_log2f(x); }

template <class H>
WL_DEVICE u32 narrow_both(float low, float high) {
  return u32(narrowed<H>::of(high).bits) << 16 | narrowed<H>::of(low).bits;
}

template <class H>
constexpr lockstep::halves kind_of =
    __is_same(H, bfloat) ? lockstep::halves::bfloat : lockstep::halves::ieee;

template <class H>
WL_DEVICE void add_product(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  const u32 b[] = {b0, b1};
  lockstep::wave_product(d, a, b, kind_of<H>);
}

} // namespace wl
