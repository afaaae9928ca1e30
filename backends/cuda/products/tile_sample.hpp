// Samples half a tile of sums at the entries of the pattern. The sums come from any kernel of
// tensor cores.
#pragma once
#include "simt/sddmm.hpp"
#include "cuda/products/mma_instructions.hpp"
#include "cuda/products/tile_pack.hpp"

namespace wl {

constexpr int TILE = 128;        // rows and columns
constexpr int NO_ENTRY = 0xffff; // a code that pads a block
// distance of rows of sums: the pairs that a half-warp writes are in 32 different banks
constexpr int TILE_LD = TILE + 8;

// The type that is multiplied: a float as two halves, other types unchanged.
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

// Loads data that many blocks read.
template <class T>
WL_DEVICE T read_again(const T* place) {
  return load_pack<T, 1>(place).at[0];
}

// The barriers of the two warpgroups that multiply and of the two that sample.
WL_DEVICE void warpgroup_barrier(int which) { named_barrier_sync<128>(which + 1); }

// The entries of the next half tile, which a sampling warpgroup loads in advance.
template <class I>
struct half_tile {
  // the position of an entry: this number of its row plus the number of the entry in the list
  I place[TILE / 2];
  float scale_C[TILE / 2]; // of rows
  float scale_B[TILE];     // of columns
};

// The operands of four entries, loaded in advance.
template <int VALUED, class S>
struct of_entries {
  S value[VALUED & 1 ? 4 : 1], before[VALUED & 2 ? 4 : 1];
};

// The entries of half a tile are a list of codes, row * 128 + column, in blocks of 512: lane t of
// 128 has the entries t, 128 + t, ... of a block contiguously. The codes of U blocks are loaded
// while the previous half tile is sampled; the operands of V blocks of entries are loaded while the
// half tile is multiplied. VALUED has bit 0 if there are values, and bit 1 if beta is not 0.
template <int PARTS, int U, int VALUED, class Signals, class T, class I>
WL_DEVICE void tile_sample(const item& it, int group, i64 first, i64 last, i64 tiles,
                           const i32* blocks, const I* places, const u8* codes, const T* values,
                           const float* scale_C, const float* scale_B, const Signals& signals,
                           const float* sums, half_tile<I>* known, T* sampled, held_t<T> alpha,
                           held_t<T> beta) {
  using S = held_t<T>;
  using four = pack<u16, 4>;
  constexpr int V = VALUED == 0 ? 1 : U < 3 ? U : 3;
  const int t = it.thread() % 128;
  const auto number = [&](i64 u) { return (u / tiles * 2 + group) * tiles + u % tiles; };
  const auto of_block = [&](int block) {
    return *(reinterpret_cast<const four*>(codes) + i64(block) * 128 + t);
  };
  four coming[U];
  I place{};
  float of_row = 1.0f, of_column = 1.0f;
  int begin = 0, end = 0, next_begin = 0, next_end = 0;
  const auto where = [&](i64 u) { // the list of half tile u
    const i64 at = number(u < last ? u : last - 1);
    next_begin = read_again(blocks + at);
    next_end = read_again(blocks + at + 1);
  };
  const auto ask = [&](i64 u) { // issues the loads for the half tile with a known list
    begin = next_begin;
    end = next_end;
#pragma unroll
    for (int i = 0; i < U; ++i)
      if (begin + i < end)
        coming[i] = of_block(begin + i);
    if (t < TILE / 2)
      place = read_again(places + number(u) * (TILE / 2) + t);
    if constexpr (PARTS == 2) {
      if (t < TILE / 2)
        of_row = read_again(scale_C + u / tiles * TILE + group * (TILE / 2) + t);
      of_column = read_again(scale_B + u % tiles * TILE + t);
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
    // the entries that this warpgroup stored two tiles ago are no longer read
    warpgroup_barrier(group + 2);
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
    signals.wait_for_sums(int(u - first));
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
    if (u + 1 < last)
      signals.sums_were_taken();
  }
}

// Whether a word of `wide` is not 0: then halves are not precise enough. The first block stores the
// verdict.
WL_DEVICE bool tiles_are_refused(const item& it, i64 words, const i32* wide, i32* verdict) {
  bool any = false;
  for (i64 i = it.thread(); i < words; i += WL_BLOCK)
    any = any || wide[i] != 0;
  any = any_of_block(any);
  if (it.block() == 0 && it.thread() == 0)
    *verdict = any;
  return any;
}

// csr_sddmm, if the verdict is that halves are not precise enough.
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
