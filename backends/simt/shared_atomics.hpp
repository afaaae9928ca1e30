// For groups of lanes that share a table in shared memory: a barrier of the group, and atomic
// operations on cells of the table. This header belongs to the dialect of lanes.hpp; few kernels
// need it.
#pragma once
#include "simt/lanes.hpp"

namespace wl {

// Stores `desired` in a cell that holds `expected`; returns the previous value. `add_to_cell` adds,
// and returns the previous value. `or_to_cell` sets bits, `least_in_cell` keeps the smaller value.
#if defined(WL_LOCKSTEP)
template <class I>
I exchange_if(I* cell, I expected, I desired) {
  const I before = *cell;
  if (before == expected)
    *cell = desired;
  return before;
}
inline i32 add_to_cell(i32* cell, i32 by) {
  const i32 before = *cell;
  *cell += by;
  return before;
}
inline void or_to_cell(u32* cell, u32 bits) { *cell |= bits; }
inline void least_in_cell(i32* cell, i32 value) { *cell = value < *cell ? value : *cell; }
#elif defined(WL_SYCL)
template <class I>
using cell_of = sycl::atomic_ref<I, sycl::memory_order::relaxed, sycl::memory_scope::work_group,
                                 sycl::access::address_space::local_space>;
template <class I>
WL_DEVICE I exchange_if(I* cell, I expected, I desired) {
  cell_of<I>(*cell).compare_exchange_strong(expected, desired);
  return expected;
}
WL_DEVICE i32 add_to_cell(i32* cell, i32 by) { return cell_of<i32>(*cell).fetch_add(by); }
WL_DEVICE void or_to_cell(u32* cell, u32 bits) { cell_of<u32>(*cell).fetch_or(bits); }
WL_DEVICE void least_in_cell(i32* cell, i32 value) { cell_of<i32>(*cell).fetch_min(value); }
#else
WL_DEVICE i32 exchange_if(i32* cell, i32 expected, i32 desired) {
  return atomicCAS(cell, expected, desired);
}
WL_DEVICE i64 exchange_if(i64* cell, i64 expected, i64 desired) {
  return i64(atomicCAS(reinterpret_cast<u64*>(cell), u64(expected), u64(desired)));
}
WL_DEVICE i32 add_to_cell(i32* cell, i32 by) { return atomicAdd(cell, by); }
WL_DEVICE void or_to_cell(u32* cell, u32 bits) { atomicOr(cell, bits); }
WL_DEVICE void least_in_cell(i32* cell, i32 value) { atomicMin(cell, value); }
#endif

// The larger of two numbers, as the operation of a reduction.
struct larger {
  i32 value;
  WL_DEVICE larger& operator+=(larger o) {
    return value = o.value > value ? o.value : value, *this;
  }
};

// Raises a cell to the largest value of the work-items of a block.
WL_DEVICE void raise_by_block(const item& it, i32* cell, i32 mine) {
  const i32 most = sum_of_block(it, larger{mine}).value;
  if (it.thread() != 0)
    return;
  for (i32 held = *cell; held < most;) {
    const i32 seen = exchange_if(cell, held, most);
    held = seen == held ? most : seen;
  }
}

// Groups of LANES adjacent work-items: a part of a wave, or the whole block.
template <int LANES>
struct lane_group {
  static_assert(LANES <= WL_WARP || LANES == WL_BLOCK, "a part of a wave or the whole block");
  static constexpr bool in_wave = LANES <= WL_WARP;
  static constexpr int per_block = WL_BLOCK / LANES;

  WL_DEVICE static int lane(const item& it) { return it.thread() % LANES; }
  WL_DEVICE static int number(const item& it) { return it.thread() / LANES; }
  WL_DEVICE static void barrier(const item& it) {
    if constexpr (in_wave)
      wave_barrier();
    else
      it.barrier();
  }
  // Whether a lane in the same barrier votes true. If the whole block is one group, all votes must
  // agree.
  WL_DEVICE static bool some(bool vote) {
    if constexpr (in_wave)
      return ballot(vote) != 0;
    else
      return vote;
  }
  template <class S>
  WL_DEVICE static S sum(const item& it, S value) {
    if constexpr (in_wave)
      return sum_of_lanes<LANES>(it, value);
    else
      return sum_of_block(it, value);
  }
};

} // namespace wl
