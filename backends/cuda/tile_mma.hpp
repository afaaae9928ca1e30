// As tile_sddmm.hpp, in the words that tensor cores have from compute capability 8.0 on: eight
// warps multiply, 16 rows of C each in registers, and eight sample what they left.
#pragma once
#include "tile_sample.hpp"

namespace wl {

// How warps that multiply and that sample take turns: barriers of 256 that half of them wait at.
struct warp_signals {
  int group;
  WL_DEVICE static void meet(int barrier) {
    asm volatile("bar.sync %0, 256;" ::"r"(barrier) : "memory");
  }
  WL_DEVICE static void pass(int barrier) {
    asm volatile("bar.arrive %0, 256;" ::"r"(barrier) : "memory");
  }
  WL_DEVICE void wait_for_sums(int) const { meet(5 + group); }
  WL_DEVICE void sums_are_left() const { pass(5 + group); }
  WL_DEVICE void sums_were_taken() const { pass(7 + group); }
  WL_DEVICE void wait_until_taken() const { meet(7 + group); }
};

WL_DEVICE void copy_16_bytes(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Four cores side by side: 16 columns of B for 16 of k.
WL_DEVICE void load_cores(u32 (&b)[4], u32 place) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(place)
               : "memory");
}

// d (16 x 8) += a (16 x 16) b (16 x 8)
template <class H>
WL_DEVICE void add_product(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1);
#define WL_MMA(H, TYPE)                                                                            \
  template <>                                                                                      \
  WL_DEVICE void add_product<H>(float (&d)[4], const u32(&a)[4], u32 b0, u32 b1) {                 \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE                            \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"            \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                  \
  }
WL_MMA(half, "f16")
WL_MMA(bfloat, "bf16")
#undef WL_MMA

// There are STAGES tiles of B in shared memory.
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
    asm volatile("cp.async.commit_group;" ::: "memory");
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
          a[part][s][0] = __ldg(of_16);
          a[part][s][1] = __ldg(of_16 + 64); // 8 rows below
          a[part][s][2] = __ldg(of_16 + 32); // 8 columns on
          a[part][s][3] = __ldg(of_16 + 96);
        }
    }
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
    warp_signals::meet(everyone); // what others copied is there too
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
        *reinterpret_cast<float2*>(of_row) = make_float2(d[j][0], d[j][1]);
        *reinterpret_cast<float2*>(of_row + 8 * TILE_LD) = make_float2(d[j][2], d[j][3]);
      }
    }
    signals.sums_are_left();
    warp_signals::meet(everyone); // all have used this tile of B
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
  extern __shared__ __align__(128) unsigned char bytes[];
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
    warps_multiply<KP, PARTS, STAGES, tile_number<T>>(
        it, first, last, tiles, C, B, u32(__cvta_generic_to_shared(bytes)), sums, signals);
  } else {
    half_tile<I>* const known =
        reinterpret_cast<half_tile<I>*>(behind + 2 * mem::of_sums) + 2 * group;
    tile_sample<PARTS, U, VALUED>(it, group, first, last, tiles, blocks, places, codes, values,
                                  scale_C, scale_B, signals, sums, known, sampled, alpha, beta);
  }
}

} // namespace wl
