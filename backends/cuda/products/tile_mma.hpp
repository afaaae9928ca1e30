// As tile_sddmm.hpp, with the instructions of tensor cores from compute capability 8.0 on: eight
// warps multiply, each with 16 rows of C in registers, and eight sample the sums in shared memory.
#pragma once
#include "cuda/products/tile_sample.hpp"

namespace wl {

// Barriers at which warps that multiply and warps that sample alternate: 256 threads arrive, and
// half of them wait.
struct warp_signals {
  int group;
  WL_DEVICE void wait_for_sums(int) const { named_barrier_sync<256>(5 + group); }
  WL_DEVICE void sums_are_left() const { named_barrier_arrive<256>(5 + group); }
  WL_DEVICE void sums_were_taken() const { named_barrier_arrive<256>(7 + group); }
  WL_DEVICE void wait_until_taken() const { named_barrier_sync<256>(7 + group); }
};

// STAGES tiles of B are in shared memory.
template <int KP, int PARTS, int STAGES, class H>
WL_DEVICE void warps_multiply(const item& it, i64 first, i64 last, i64 tiles, const u8* C,
                              const u8* B, u32 memory, float* sums, const warp_signals& signals) {
  using places = tile_places<KP, TILE, PARTS>;
  using mem = tile_memory<KP, PARTS>;
  constexpr int steps = KP / 16, everyone = 9;
  const int t = it.thread(), warp = t / 32, lane = t % 32;
  const auto bring = [&](i64 u, int stage) {
    if (u < last)
      for (int i = t * 16; i < mem::of_B; i += 256 * 16)
        copy_16_bytes(memory + stage * mem::of_B + i, B + u % tiles * mem::of_B + i);
    commit_copies();
  };
#pragma unroll
  for (int stage = 0; stage < STAGES; ++stage)
    bring(first + stage, stage);
  u32 a[PARTS][steps][4];
  i64 panel = -1;
  for (i64 u = first; u < last; ++u) {
    const int stage = int(u - first) % STAGES;
    if (u / tiles != panel) {
      panel = u / tiles;
      const u32* const of_C =
          reinterpret_cast<const u32*>(C) + panel * (places::of_tile / 2) + warp * 2 * 64 + lane;
#pragma unroll
      for (int part = 0; part < PARTS; ++part)
#pragma unroll
        for (int s = 0; s < steps; ++s) {
          const u32* const of_16 = of_C + (part * places::of_part + s * places::of_16) / 2;
          a[part][s][0] = read_again(of_16);
          a[part][s][1] = read_again(of_16 + 64); // 8 rows below
          a[part][s][2] = read_again(of_16 + 32); // 8 columns further
          a[part][s][3] = read_again(of_16 + 96);
        }
    }
    wait_for_copies<STAGES - 1>();
    named_barrier_sync<256>(everyone); // all copies have arrived
    const u32 of_B = memory + stage * mem::of_B + lane * 16;
    float* const mine = sums + (warp % 4 * 16 + lane / 4) * TILE_LD + lane % 4 * 2;
#pragma unroll 1
    for (int c = 0; c < TILE / 16; ++c) {
      float d[2][4] = {}, cross[2][4] = {};
#pragma unroll
      for (int s = 0; s < steps; ++s) {
        const u32 place = of_B + (s * places::of_16 + c * 4 * 64) * 2;
        u32 high[4], low[4];
        load_cores(high, place);
        if constexpr (PARTS == 2)
          load_cores(low, place + places::of_part * 2);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          if constexpr (PARTS == 2) {
            add_product<H>(cross[j], a[0][s], low[j * 2], low[j * 2 + 1]);
            add_product<H>(cross[j], a[PARTS - 1][s], high[j * 2], high[j * 2 + 1]);
          }
          add_product<H>(d[j], a[0][s], high[j * 2], high[j * 2 + 1]);
        }
      }
      if (c == 0 && u > first)
        signals.wait_until_taken();
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        if constexpr (PARTS == 2)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            d[j][i] += cross[j][i] * (1.0f / LOW_PART);
        float* const of_row = mine + c * 16 + j * 8;
        *reinterpret_cast<pack<float, 2>*>(of_row) = {{d[j][0], d[j][1]}};
        *reinterpret_cast<pack<float, 2>*>(of_row + 8 * TILE_LD) = {{d[j][2], d[j][3]}};
      }
    }
    signals.sums_are_left();
    named_barrier_sync<256>(everyone); // all have used this tile of B
    bring(u + STAGES, stage);
  }
}

// See tile_sddmm.
template <int KP, int PARTS, int STAGES, int U, int VALUED, class T, class I>
WL_DEVICE void tile_mma(const item& it, i64 tiles, i64 units, const i32* blocks, const I* places,
                        const u8* codes, const T* values, const u8* C, const u8* B,
                        const float* scale_C, const float* scale_B, i64 words, const i32* wide,
                        i32* verdict, T* sampled, held_t<T> alpha, held_t<T> beta) {
  using mem = tile_memory<KP, PARTS>;
  WL_DYNAMIC_SHARED(bytes);
  if constexpr (PARTS == 2)
    if (tiles_are_refused(it, words, wide, verdict))
      return;
  const i64 first = it.block() * units / it.blocks();
  const i64 last = (it.block() + 1) * units / it.blocks();
  if (first == last)
    return;
  const bool multiplies = it.thread() < 256;
  const int group = it.thread() / 128 % 2;
  const warp_signals signals{group};
  unsigned char* const behind = bytes + STAGES * mem::of_B;
  float* const sums = reinterpret_cast<float*>(behind + group * mem::of_sums);
  if (multiplies) {
    warps_multiply<KP, PARTS, STAGES, tile_number<T>>(it, first, last, tiles, C, B,
                                                      shared_offset(bytes), sums, signals);
  } else {
    half_tile<I>* const known =
        reinterpret_cast<half_tile<I>*>(behind + 2 * mem::of_sums) + 2 * group;
    tile_sample<PARTS, U, VALUED>(it, group, first, last, tiles, blocks, places, codes, values,
                                  scale_C, scale_B, signals, sums, known, sampled, alpha, beta);
  }
}

} // namespace wl
