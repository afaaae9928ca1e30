// S = alpha <C_i, B_j> A_ij + beta S by dense tiles on Hopper's tensor cores, sampled as they come.
//
// A block of four warpgroups walks the tiles of 128 columns, of 128 rows at a time. Two warpgroups
// have 64 rows of C each in registers and multiply; the other two sample what those left in shared
// memory while the next tile is multiplied. B comes in whole tiles, two of them, by the engine that
// copies; the warpgroup that is the last to have used one asks for the one after the next.
#pragma once
#include "sddmm.hpp"
#include "tensor_words.hpp"
#include "tile_pack.hpp"

namespace wl {

constexpr int TILE = 128;         // rows and columns
constexpr int NO_ENTRY = 0xffff;  // a code that fills a block up
constexpr int TILE_LD = TILE + 8; // of sampled sums: pairs of a half-wave are in 32 banks

// What is multiplied: floats as two halves, others as they are.
template <class T>
struct tile_part {
  using type = T;
};
template <>
struct tile_part<float> {
  using type = half;
};
template <class T>
using tile_number = typename tile_part<T>::type;

template <int KP, int PARTS>
struct tile_memory {
  static constexpr int of_B = PARTS * TILE * KP * 2, of_sums = TILE / 2 * TILE_LD * 4;
  static constexpr int B = 128, sums = B + 2 * of_B, known = sums + 2 * of_sums;
};

WL_DEVICE void warpgroup_barrier(int which) {
  asm volatile("bar.sync %0, 128;" ::"r"(which + 1) : "memory");
}

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
          a[part][s][0] = __ldg(of_16);
          a[part][s][1] = __ldg(of_16 + 64); // 8 rows below
          a[part][s][2] = __ldg(of_16 + 32); // 8 columns on
          a[part][s][3] = __ldg(of_16 + 96);
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
    if (t == 0 && atomicAdd(used + buffer, 1) == 1) {
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
      *reinterpret_cast<float2*>(mine + j * 8) = make_float2(d[j * 4], d[j * 4 + 1]);
      *reinterpret_cast<float2*>(mine + 8 * TILE_LD + j * 8) =
          make_float2(d[j * 4 + 2], d[j * 4 + 3]);
    }
    arrive(left);
  }
}

// What a sampling warpgroup wants to know of its half of a tile, one ahead of what it samples.
template <class I>
struct half_tile {
  I place[TILE / 2];       // where entries of a row are: this and the number of one in the list
  float scale_C[TILE / 2]; // of rows
  float scale_B[TILE];     // of columns
};

// What is read of four entries beforehand.
template <int VALUED, class S>
struct of_entries {
  S value[VALUED & 1 ? 4 : 1], before[VALUED & 2 ? 4 : 1];
};

// The entries of half a tile are a list of codes, row * 128 + column, in blocks of 512: lane t of
// 128 has the entries t, 128 + t, ... of a block side by side. U blocks are asked for while the
// half tile before is sampled; what is read of V blocks of entries is while it is multiplied.
// VALUED has bit 0 if there are values, and bit 1 if beta is not 0.
template <int PARTS, int U, int VALUED, class T, class I>
WL_DEVICE void tile_sample(const item& it, int group, i64 first, i64 last, i64 tiles,
                           const i32* blocks, const I* places, const u8* codes, const T* values,
                           const float* scale_C, const float* scale_B, u32 memory,
                           const float* sums, half_tile<I>* known, T* sampled, held_t<T> alpha,
                           held_t<T> beta) {
  using S = held_t<T>;
  using four = pack<u16, 4>;
  constexpr int V = VALUED == 0 ? 1 : U < 3 ? U : 3;
  const int t = it.thread() % 128;
  const u32 left = memory + 32 + 8 * group, taken = memory + 48 + 8 * group;
  const auto number = [&](i64 u) { return (u / tiles * 2 + group) * tiles + u % tiles; };
  const auto of_block = [&](int block) {
    return *(reinterpret_cast<const four*>(codes) + i64(block) * 128 + t);
  };
  four coming[U];
  I place{};
  float of_row = 1.0f, of_column = 1.0f;
  int begin = 0, end = 0, next_begin = 0, next_end = 0;
  const auto where = [&](i64 u) { // the list of the half tile of u
    const i64 at = number(u < last ? u : last - 1);
    next_begin = __ldg(blocks + at);
    next_end = __ldg(blocks + at + 1);
  };
  const auto ask = [&](i64 u) { // for the half tile whose list is known
    begin = next_begin;
    end = next_end;
#pragma unroll
    for (int i = 0; i < U; ++i)
      if (begin + i < end)
        coming[i] = of_block(begin + i);
    if (t < TILE / 2)
      place = __ldg(places + number(u) * (TILE / 2) + t);
    if constexpr (PARTS == 2) {
      if (t < TILE / 2)
        of_row = __ldg(scale_C + u / tiles * TILE + group * (TILE / 2) + t);
      of_column = __ldg(scale_B + u % tiles * TILE + t);
    }
  };
  where(first);
  ask(first);
  where(first + 1);
  for (i64 u = first; u < last; ++u) {
    half_tile<I>& now = known[(u - first) & 1];
    if (t < TILE / 2) {
      now.place[t] = place;
      now.scale_C[t] = of_row;
    }
    now.scale_B[t] = of_column;
    warpgroup_barrier(group + 2); // and nobody reads what this half had two tiles ago
    const int count = end - begin, start = begin;
    const auto place_of = [&](int i, int j, int row) {
      return now.place[row] + I(i * 512 + j * 128 + t);
    };
    const auto read = [&](int i, const four& codes, of_entries<VALUED, S>& known) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (codes.at[j] != NO_ENTRY) {
          const I e = place_of(i, j, codes.at[j] >> 7);
          if constexpr (VALUED & 1)
            known.value[j] = widen(read_once(values + e));
          if constexpr (VALUED & 2)
            known.before[j] = widen(sampled[e]);
        }
    };
    four code[U];
    of_entries<VALUED, S> read_ahead[V];
#pragma unroll
    for (int i = 0; i < U; ++i)
      if (i < count) {
        code[i] = coming[i];
        if constexpr (VALUED)
          if (i < V)
            read(i, code[i], read_ahead[i % V]);
      }
    if (u + 1 < last)
      ask(u + 1);
    where(u + 2);
    const auto sample = [&](int i, const four& codes, const of_entries<VALUED, S>& known) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int c = codes.at[j], row = c >> 7, column = c & (TILE - 1);
        if (c == NO_ENTRY)
          continue;
        S dot = sums[row * TILE_LD + column];
        if constexpr (PARTS == 2)
          dot = dot * now.scale_C[row] * now.scale_B[column];
        dot *= alpha;
        if constexpr (VALUED & 1)
          dot *= known.value[j];
        if constexpr (VALUED & 2)
          dot += beta * known.before[j];
        sampled[place_of(i, j, row)] = narrowed<T>::of(dot);
      }
    };
    wait_for(left, int(u - first) & 1);
#pragma unroll
    for (int i = 0; i < U; ++i)
      if (i < count) {
        sample(i, code[i], read_ahead[i % V]);
        if constexpr (VALUED && V < U)
          if (i + V < U && i + V < count)
            read(i + V, code[i + V < U ? i + V : 0], read_ahead[i % V]);
      }
    for (int i = U; i < count; ++i) {
      const four more = of_block(start + i);
      if constexpr (VALUED)
        read(i, more, read_ahead[0]);
      sample(i, more, read_ahead[0]);
    }
    arrive(taken);
  }
}

// Tiles of S are numbered along rows of tiles, and every block has its share of neighbours. If a
// word of `wide` is not 0, nothing is done but to say so in `verdict`.
template <int KP, int PARTS, int U, int VALUED, class T, class I>
WL_DEVICE void tile_sddmm(const item& it, i64 tiles, i64 units, const i32* blocks, const I* places,
                          const u8* codes, const T* values, const u8* C, const u8* B,
                          const float* scale_C, const float* scale_B, i64 words, const i32* wide,
                          i32* verdict, T* sampled, held_t<T> alpha, held_t<T> beta) {
  using mem = tile_memory<KP, PARTS>;
  extern __shared__ __align__(128) unsigned char bytes[];
  const u32 memory = shared_address(bytes);
  int* const used = reinterpret_cast<int*>(bytes + 64);
  if constexpr (PARTS == 2) {
    bool any = false;
    for (i64 i = it.thread(); i < words; i += WL_BLOCK)
      any = any || wide[i] != 0;
    any = __syncthreads_or(any);
    if (it.block() == 0 && it.thread() == 0)
      *verdict = any;
    if (any)
      return;
  }
  const i64 first = it.block() * units / it.blocks();
  const i64 last = (it.block() + 1) * units / it.blocks();
  if (it.thread() == 0) {
    for (int i = 0; i < 2; ++i) {
      barrier_init(memory + 8 * i, 1);        // a tile of B came
      barrier_init(memory + 32 + 8 * i, 128); // sums of a warpgroup are left
      barrier_init(memory + 48 + 8 * i, 128); // and were taken
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
                                    scale_C, scale_B, memory, sums, known, sampled, alpha, beta);
  }
}

// csr_sddmm where the verdict is that halves do not do.
template <int L, int V, int E, int A, int WHOLE, class T, class I>
WL_DEVICE void sddmm_if_wide(const item& it, const i32* verdict, i64 items, i64 k, i64 batch,
                             const I* bounds, const I* target, const I* indices, const T* values,
                             i64 values_step, const T* C, i64 C_ld, i64 C_step, const T* B,
                             i64 B_ld, i64 B_step, T* sampled, i64 S_step, held_t<T> alpha,
                             held_t<T> beta) {
  if (*verdict != 0)
    csr_sddmm<L, V, E, A, WHOLE>(it, items, k, batch, bounds, target, indices, values, values_step,
                                 C, C_ld, C_step, B, B_ld, B_step, sampled, S_step, alpha, beta);
}

} // namespace wl
