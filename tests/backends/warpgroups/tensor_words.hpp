// The words of backends/cuda/tensor_words.hpp that tiles of samples use, on the CPU.
#pragma once
#include "mma_words.hpp"

namespace wl {

inline u32 shared_address(const void* place) { return shared_place(place); }

inline auto& counting(u32 barrier) { return lockstep::here().counting[barrier]; }

inline void barrier_init(u32 barrier, u32 arrivals) {
  counting(barrier) = {int(arrivals), int(arrivals), 0, 0};
}
inline void barriers_are_ready() {}
inline void arrive(u32 barrier) {
  --counting(barrier).missing;
  ++lockstep::here().events;
  lockstep::turn_if_done(counting(barrier));
}
inline void arrive_expecting(u32 barrier, u32 bytes) {
  counting(barrier).bytes += bytes;
  arrive(barrier);
}
inline void wait_for(u32 barrier, u32 parity) {
  while (counting(barrier).phase == parity)
    lockstep::yield();
}
inline void copy_to_shared(u32 to, const void* from, u32 bytes, u32 barrier) {
  std::memcpy(lockstep::here().shared + to, from, bytes);
  counting(barrier).bytes -= bytes;
  lockstep::turn_if_done(counting(barrier));
}

template <int Registers>
void take_registers() {}
template <int Registers>
void give_registers() {}

inline u64 tile_descriptor(u32 address) { return address; }
inline void wgmma_fence() {}
inline void wgmma_commit() {}
template <int Groups>
void wgmma_wait() {}
template <class T, int Count>
void keep(T (&)[Count]) {}

template <int N, class H>
struct tile_product {
  static void add(float* d, const u32* a, u64 b, u32 add) {
    float left[16][16];
    gather<H>(a, left);
    const int lane = lockstep::thread() % 32;
    const unsigned char* const cores = lockstep::here().shared + b;
    for (int i = 0; i < N / 2; ++i) {
      const int r = lane / 4 + i % 4 / 2 * 8, n = i / 4 * 8 + lane % 4 * 2 + i % 2;
      float sum = add ? d[i] : 0.0f;
      for (int k = 0; k < 16; ++k) {
        H number;
        std::memcpy(&number, cores + n / 8 * 256 + k / 8 * 128 + n % 8 * 16 + k % 8 * 2, 2);
        sum += left[r][k] * widen(number);
      }
      d[i] = sum;
    }
  }
};

} // namespace wl
