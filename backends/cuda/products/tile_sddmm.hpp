// S = alpha <C_i, B_j> A_ij + beta S by dense tiles on Hopper's tensor cores, sampled as soon as
// each tile is computed.
//
// A block of four warpgroups processes 128 rows and traverses their tiles of 128 columns. Two
// warpgroups multiply, each with 64 rows of C in registers; the other two sample the sums in shared
// memory while the next tile is multiplied. The copy engine loads B in whole tiles into two
// buffers. The last warpgroup to use a buffer issues the copy of the tile after the next one.
#pragma once
#include "cuda/products/hopper_instructions.hpp"
#include "cuda/products/tile_sample.hpp"

namespace wl {

// The barriers at which multiplying and sampling warpgroups alternate.
struct tile_signals {
  u32 left, taken;
  WL_DEVICE void wait_for_sums(int turn) const { wait_for(left, turn & 1); }
  WL_DEVICE void sums_were_taken() const { arrive(taken); }
};

template <int KP, int PARTS, class H>
WL_DEVICE void tile_multiply(const item& it, int group, i64 first, i64 last, i64 tiles, const u8* C,
                             const u8* B, u32 memory, float* sums, int* used) {
  using places = tile_places<KP, TILE, PARTS>;
  using mem = tile_memory<KP, PARTS>;
  constexpr int steps = KP / 16;
  const int t = it.thread() % 128, warp = t / 32, lane = t % 32;
  const u32 came = memory, left = memory + 32 + 8 * group, taken = memory + 48 + 8 * group;
  u32 a[PARTS][steps][4];
  float d[TILE / 2];
  i64 panel = -1;
  for (i64 u = first; u < last; ++u) {
    const int turn = int(u - first), buffer = turn & 1;
    if (u / tiles != panel) {
      panel = u / tiles;
      const u32* const of_C = reinterpret_cast<const u32*>(C) + panel * (places::of_tile / 2) +
                              (group * 4 + warp) * 2 * 64 + lane;
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
    wait_for(came + 8 * buffer, (turn >> 1) & 1);
    const u32 of_B = memory + mem::B + buffer * mem::of_B;
    const auto b = [&](int part, int s) {
      return tile_descriptor(of_B + (part * places::of_part + s * places::of_16) * 2);
    };
    wgmma_fence();
    if constexpr (PARTS == 2) {
#pragma unroll
      for (int s = 0; s < steps; ++s) {
        tile_product<TILE, H>::add(d, a[0][s], b(1, s), s > 0);
        tile_product<TILE, H>::add(d, a[1][s], b(0, s), 1);
      }
      wgmma_commit();
      wgmma_wait<0>();
      keep(d);
#pragma unroll
      for (int i = 0; i < TILE / 2; ++i)
        d[i] *= 1.0f / LOW_PART;
      wgmma_fence();
    }
#pragma unroll
    for (int s = 0; s < steps; ++s)
      tile_product<TILE, H>::add(d, a[0][s], b(0, s), PARTS == 2 || s > 0);
    wgmma_commit();
    wgmma_wait<0>();
    keep(d);
    warpgroup_barrier(group); // all four warps have used this tile
    if (t == 0 && count_up(used + buffer) == 1) {
      used[buffer] = 0;
      if (u + 2 < last) {
        arrive_expecting(came + 8 * buffer, mem::of_B);
        copy_to_shared(of_B, B + (u + 2) % tiles * mem::of_B, mem::of_B, came + 8 * buffer);
      }
    }
    wait_for(taken, (turn & 1) ^ 1);
    float* const mine = sums + (warp * 16 + lane / 4) * TILE_LD + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < TILE / 8; ++j) {
      *reinterpret_cast<pack<float, 2>*>(mine + j * 8) = {{d[j * 4], d[j * 4 + 1]}};
      *reinterpret_cast<pack<float, 2>*>(mine + 8 * TILE_LD +
                                         j * 8) = {{d[j * 4 + 2], d[j * 4 + 3]}};
    }
    arrive(left);
  }
}

// Tiles of S are numbered along rows of tiles, and every block processes a contiguous share. If a
// word of `wide` is not 0, the kernel only stores that in `verdict`.
template <int KP, int PARTS, int U, int VALUED, class T, class I>
WL_DEVICE void tile_sddmm(const item& it, i64 tiles, i64 units, const i32* blocks, const I* places,
                          const u8* codes, const T* values, const u8* C, const u8* B,
                          const float* scale_C, const float* scale_B, i64 words, const i32* wide,
                          i32* verdict, T* sampled, held_t<T> alpha, held_t<T> beta) {
  using mem = tile_memory<KP, PARTS>;
  WL_DYNAMIC_SHARED(bytes);
  const u32 memory = shared_address(bytes);
  int* const used = reinterpret_cast<int*>(bytes + 64);
  if constexpr (PARTS == 2)
    if (tiles_are_refused(it, words, wide, verdict))
      return;
  const i64 first = it.block() * units / it.blocks();
  const i64 last = (it.block() + 1) * units / it.blocks();
  if (it.thread() == 0) {
    for (int i = 0; i < 2; ++i) {
      barrier_init(memory + 8 * i, 1);        // a tile of B has arrived
      barrier_init(memory + 32 + 8 * i, 128); // a warpgroup has stored its sums
      barrier_init(memory + 48 + 8 * i, 128); // and its sums were read
      used[i] = 0;
    }
    barriers_are_ready();
    for (int i = 0; i < 2; ++i)
      if (first + i < last) {
        arrive_expecting(memory + 8 * i, mem::of_B);
        copy_to_shared(memory + mem::B + i * mem::of_B, B + (first + i) % tiles * mem::of_B,
                       mem::of_B, memory + 8 * i);
      }
  }
  it.barrier();
  const int role = it.thread() / 128, group = role % 2;
  float* const sums = reinterpret_cast<float*>(bytes + mem::sums + group * mem::of_sums);
  if (role < 2) {
    take_registers<160>();
    tile_multiply<KP, PARTS, tile_number<T>>(it, group, first, last, tiles, C, B, memory, sums,
                                             used);
  } else {
    give_registers<96>();
    half_tile<I>* const known = reinterpret_cast<half_tile<I>*>(bytes + mem::known) + 2 * group;
    if (first < last)
      tile_sample<PARTS, U, VALUED>(it, group, first, last, tiles, blocks, places, codes, values,
                                    scale_C, scale_B,
                                    tile_signals{memory + 32 + 8 * group, memory + 48 + 8 * group},
                                    sums, known, sampled, alpha, beta);
  }
}

} // namespace wl
