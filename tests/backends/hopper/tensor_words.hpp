// The words of backends/cuda/tensor_words.hpp, as machine.hpp carries them out.
#pragma once
#include "narrow.hpp"

namespace wl {

inline u32 shared_address(const void* place) { return u32(static_cast<const u8*>(place) - shared); }

inline void barrier_init(u32 barrier, u32 arrivals) {
  lockstep::here().barriers[barrier] = {int(arrivals), int(arrivals), 0, 0};
}
inline void barriers_are_ready() {}
inline void arrive_expecting(u32 barrier, u32 bytes) {
  lockstep::counting& there = lockstep::here().barriers.at(barrier);
  there.bytes += bytes;
  if (--there.pending < 0)
    lockstep::fail("more arrivals than were expected");
  lockstep::settle(there);
}
inline void arrive(u32 barrier) { arrive_expecting(barrier, 0); }
inline void wait_for(u32 barrier, u32 parity) {
  const lockstep::counting& there = lockstep::here().barriers.at(barrier);
  while (there.phase == parity && lockstep::here().error.empty())
    lockstep::yield();
}
inline void named_wait(int barrier) { lockstep::meet(barrier, 256); }
inline void named_arrive(int barrier) { lockstep::come(barrier, 256); }

inline void copy_to_shared(u32 to, const void* from, u32 bytes, u32 barrier) {
  if (bytes == 0 || bytes % 16 || to % 16 || reinterpret_cast<u64>(from) % 16)
    lockstep::fail("a copy is not of whole units of 16 bytes");
  if (to + bytes > sizeof shared)
    lockstep::fail("a copy beyond shared memory");
  const u8* const data = static_cast<const u8*>(from);
  lockstep::here().copies.push_back({to, {data, data + bytes}, barrier});
  ++lockstep::here().progress;
}

template <class Word>
inline void unpack(u32 mask, u32 at, u32 (&x)[8]) {
  for (int e = 0; e < 8; ++e) {
    x[e] = 0;
    if (mask >> e & 1) {
      Word word;
      std::memcpy(&word, shared + at, sizeof word);
      x[e] = word;
      at += sizeof word;
    }
  }
}
inline u32 shared_word(u32 at) {
  u32 word;
  std::memcpy(&word, shared + at, 4);
  return word;
}
inline u32 shared_short(u32 at) { return lockstep::bits_at(at); }
inline float2 shared_pair(u32 at) {
  float2 pair;
  std::memcpy(&pair, shared + at, 8);
  return pair;
}

template <int Registers>
inline void take_registers() {}
template <int Registers>
inline void give_registers() {}

inline u64 tile_descriptor(u32 address) { return address >> 4; }
inline void wgmma_fence() {}
inline void wgmma_commit() {}
template <int Groups>
inline void wgmma_wait() {
  static_assert(Groups == 0, "the machine runs all products that were asked for");
  lockstep::wait_for_products();
}
template <class R, int Count>
inline void keep(R (&)[Count]) {}

template <int N, class T>
struct tile_product {
  static void add(float* d, const u32* a, u64 b, u32 add) {
    constexpr bool wide = sizeof(held_t<T>) && !__is_same(T, half);
    lockstep::here().fibers[lockstep::thread()].products.push_back(
        {d, a, u32(b << 4), N, add != 0, wide});
  }
};

} // namespace wl
