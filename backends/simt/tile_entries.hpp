// The entries of a sparse matrix, stored into a tile in shared memory.
#pragma once
#include "simt/lanes.hpp"

namespace wl {

// Prefetches entries into the cache of the device, so that later loads of a block wait less.
template <class T>
WL_DEVICE void ask_for(const item& it, const T* values, i64 entries) {
#if defined(WL_CUDA) && __CUDA_ARCH__ >= 800
  constexpr int of_line = 128 / int(sizeof(T)); // elements
  for (i64 e = it.thread() * of_line; e < entries; e += WL_BLOCK * of_line)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(values + e));
#else
  (void)it, (void)values, (void)entries;
#endif
}

// Stores all entries, entry e at tile[places[e]]. A work-item loads `together` entries before it
// stores the first of them, so that the latencies of its loads overlap.
template <int together, class P, class T>
WL_DEVICE void scatter_entries(const item& it, const P* places, i64 entries, const T* values,
                               T* tile) {
  for (i64 base = it.thread(); base < entries; base += together * WL_BLOCK) {
    T v[together];
    P place[together];
#pragma unroll
    for (int u = 0; u < together; ++u) {
      const i64 e = base + u * WL_BLOCK;
      place[u] = e < entries ? places[e] : -1;
      v[u] = e < entries ? values[e] : T(0);
    }
#pragma unroll
    for (int u = 0; u < together; ++u)
      if (place[u] >= 0)
        tile[place[u]] = v[u];
  }
}

// Stores the entries of `moves`, each at the element that the upper 16 bits give. All work-items
// make the same number of iterations, with or without an entry in the last one, because each
// iteration has a barrier of the wave, at which all loads are waited for together.
template <int together, class T>
WL_DEVICE void move_entries(const item& it, const u32* moves, int count, const T* values, T* tile) {
  for (int base = 0; base < count; base += together * WL_BLOCK) {
    const int first = base + it.thread();
    const int left = first < count ? (count - first + WL_BLOCK - 1) / WL_BLOCK : 0;
    T v[together];
    u32 move[together];
#pragma unroll
    for (int u = 0; u < together; ++u)
      move[u] = u < left ? moves[first + u * WL_BLOCK] : 0u;
    wave_barrier();
#pragma unroll
    for (int u = 0; u < together; ++u)
      v[u] = u < left ? values[move[u] & 0xffffu] : T(0);
    wave_barrier();
#pragma unroll
    for (int u = 0; u < together; ++u)
      if (u < left)
        tile[move[u] >> 16] = v[u];
  }
}

} // namespace wl
