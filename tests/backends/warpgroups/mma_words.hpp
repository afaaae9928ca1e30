// The words of backends/cuda/mma_words.hpp, on the CPU.
#pragma once
#include "packs.hpp"

namespace wl {

#define WL_DYNAMIC_SHARED(name) unsigned char* const name = lockstep::here().shared

inline u32 shared_place(const void* place) {
  return u32(static_cast<const unsigned char*>(place) - lockstep::here().shared);
}

template <int Threads>
void meet(int barrier) {
  lockstep::meet(lockstep::here().some[barrier], Threads);
}
template <int Threads>
void pass(int barrier) {
  lockstep::pass(lockstep::here().some[barrier], Threads);
}

inline bool any_of_block(bool mine) {
  auto& m = lockstep::here();
  lockstep::barrier();
  m.any = false;
  lockstep::barrier();
  m.any = m.any || mine;
  lockstep::barrier();
  return m.any;
}

inline int count_up(int* counter) {
  ++lockstep::here().events;
  return (*counter)++;
}

inline void copy_16_bytes(u32 to, const void* from) {
  std::memcpy(lockstep::here().shared + to, from, 16);
}
inline void copies_are_a_group() {}
template <int Groups>
void wait_for_copies() {}

inline void load_cores(u32 (&b)[4], u32 row) {
  u32 rows[32];
  lockstep::share(&row, 1, [&](int l, const u32* words) { rows[l] = words[0]; });
  const int lane = lockstep::thread() % 32;
  for (int m = 0; m < 4; ++m)
    std::memcpy(&b[m], lockstep::here().shared + rows[m * 8 + lane / 4] + lane % 4 * 4, 4);
}

// Two neighbours of a matrix are a word.
template <class H, int Columns>
void put(float (&matrix)[16][Columns], int r, int c, bool down, u32 word) {
  matrix[r][c] = widen(H{u16(word)});
  matrix[r + down][c + !down] = widen(H{u16(word >> 16)});
}

// A (16 x 16) of a warp, of which each lane has four words.
template <class H>
void put_left(float (&a)[16][16], int l, const u32* words) {
  for (int i = 0; i < 4; ++i)
    put<H>(a, l / 4 + i % 2 * 8, l % 4 * 2 + i / 2 * 8, false, words[i]);
}

template <class H>
void gather(const u32* mine, float (&a)[16][16]) {
  lockstep::share(mine, 4, [&](int l, const u32* words) { put_left<H>(a, l, words); });
}

template <class H>
void add_product(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  float left[16][16], right[16][8];
  const u32 mine[] = {a[0], a[1], a[2], a[3], b0, b1};
  lockstep::share(mine, 6, [&](int l, const u32* words) {
    put_left<H>(left, l, words);
    put<H>(right, l % 4 * 2, l / 4, true, words[4]);
    put<H>(right, l % 4 * 2 + 8, l / 4, true, words[5]);
  });
  const int lane = lockstep::thread() % 32;
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 16; ++k)
      d[i] += left[lane / 4 + i / 2 * 8][k] * right[k][lane % 4 * 2 + i % 2];
}

} // namespace wl
