// The instructions of backends/cuda/products/hopper_instructions.hpp, as machine.cpp carries them
// out.
#pragma once
#include "cuda/products/counting_barriers.hpp"
#include "cuda/products/descriptors.hpp"
#include "cuda/products/mma_instructions.hpp"

namespace wl {

WL_DEVICE u32 shared_address(const void* pointer) { return shared_offset(pointer); }

WL_DEVICE void barriers_are_ready() {}
WL_DEVICE void arrive_expecting(u32 barrier, u32 bytes) {
  lockstep::counting_arrive(barrier, bytes);
}
WL_DEVICE void named_wait(int barrier) { lockstep::named_barrier_sync(barrier, 256); }
WL_DEVICE void named_arrive(int barrier) { lockstep::named_barrier_arrive(barrier, 256); }

WL_DEVICE void copy_to_shared(u32 to, const void* from, u32 bytes, u32 barrier) {
  lockstep::copy(to, from, bytes, barrier);
}

WL_DEVICE u32 shared_word(u32 at) {
  u32 word;
  __builtin_memcpy(&word, shared + at, sizeof word);
  return word;
}
WL_DEVICE u32 shared_short(u32 at) {
  u16 word;
  __builtin_memcpy(&word, shared + at, sizeof word);
  return word;
}
WL_DEVICE float2 shared_pair(u32 at) {
  float2 pair;
  __builtin_memcpy(&pair, shared + at, sizeof pair);
  return pair;
}
template <class Word>
WL_DEVICE void unpack(u32 mask, u32 at, u32 (&x)[8]) {
  for (int e = 0; e < 8; ++e) {
    const bool there = mask >> e & 1;
    x[e] = !there ? 0 : sizeof(Word) == 4 ? shared_word(at) : shared_short(at);
    at += there ? u32(sizeof(Word)) : 0;
  }
}

template <int Registers>
WL_DEVICE void take_registers() {}
template <int Registers>
WL_DEVICE void give_registers() {}

WL_DEVICE void wgmma_fence() {}
WL_DEVICE void wgmma_commit() { lockstep::commit_products(); }
WL_DEVICE void publish_to_products() {}
template <int Groups>
WL_DEVICE void wgmma_wait() {
  lockstep::wait_for_products(Groups);
}
template <class Held>
WL_DEVICE void keep(Held&) {}

template <int N, class H>
struct tile_product {
  WL_DEVICE static void add(float* d, const u32* a, u64 b, u32 add) {
    lockstep::ask_product({d, a, 0, b, N, add != 0, false, kind_of<H>});
  }
  WL_DEVICE static void add(float* d, u64 a, u64 b, u32 add) {
    lockstep::ask_product({d, nullptr, a, b, N, add != 0, false, kind_of<H>});
  }
};

template <int N, class H>
struct weighted_product {
  WL_DEVICE static void add(float* d, const u32* a, u64 b, u32 add) {
    lockstep::ask_product({d, a, 0, b, N, add != 0, true, kind_of<H>});
  }
};

} // namespace wl
