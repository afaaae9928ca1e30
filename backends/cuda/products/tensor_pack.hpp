// Values of A and rows of B, laid out for tensor cores.
#pragma once
#include "cuda/products/tensor_tiles.hpp"

namespace wl {

// exponents[i] scales the largest value of row i as tensor_tiles.hpp says, or is not_finite.
constexpr i32 not_finite = 1 << 20;

template <class I>
WL_DEVICE void tensor_scale_rows(const item& it, i64 m, const I* indptr, const float* values,
                                 i32* exponents) {
  const i64 row = it.block() * (WL_BLOCK / WL_WARP) + wave_of(it);
  if (row >= m)
    return;
  u32 largest = 0; // as integers, absolute values have the same order, and NaN is above all of them
#pragma unroll 4
  for (i64 e = indptr[row] + lane_of(it); e < indptr[row + 1]; e += WL_WARP) {
    const u32 size = bits_of(values[e]) & 0x7fffffffu;
    largest = size > largest ? size : largest;
  }
  for (int d = 1; d < WL_WARP; d *= 2) {
    const u32 other = shuffle_xor(it, largest, d);
    largest = other > largest ? other : largest;
  }
  if (lane_of(it) == 0)
    exponents[row] = largest >= 0x7f800000u ? not_finite
                     : largest              ? largest_exponent - exponent_of(float_of(largest))
                                            : 0;
}

// Copies the values of A to the positions in the masks: position p of a block of rows gets the
// value of entry (first entry of the block) + (order[p] >> 6), which is in row order[p] & 63 of the
// block; ~0 marks padding. `pieces` thread blocks share a block of rows. For float32, bad[...]
// tells whether one of their values cannot be scaled.
template <class T, class I>
WL_DEVICE void tensor_pack_values(const item& it, i64 m, i64 steps, i64 pieces, const I* indptr,
                                  const i32* starts, const u8* order, const T* values, u8* packed,
                                  const i32* exponents, i32* bad) {
  using word = typename tensor_of<T>::word;
  // each load needs the result of another one: several are in flight at a time
  constexpr int ahead = 4;
  const i64 b = it.block() / pieces, piece = it.block() % pieces, first_row = b * tensor_rows;
  const T* const from = values + indptr[first_row];
  WL_SHARED(i32, scale, tensor_rows);
  bool wrong = false;
  if constexpr (tensor_of<T>::parts == 2) {
    if (it.thread() < tensor_rows) {
      const i64 row = first_row + it.thread();
      const i32 e = row < m ? exponents[row] : 0;
      wrong = e == not_finite;
      scale[it.thread()] = wrong ? 0 : e;
    }
    it.barrier();
  }
  const u32* const places = reinterpret_cast<const u32*>(order);
  word* const out = reinterpret_cast<word*>(packed);
  const i64 begin = i64(starts[b * steps + piece * steps / pieces]) * tensor_unit;
  const i64 end = i64(starts[b * steps + (piece + 1) * steps / pieces]) * tensor_unit;
  for (i64 p = begin + it.thread(); p < end; p += ahead * WL_BLOCK) {
    u32 place[ahead];
    T x[ahead];
#pragma unroll
    for (int a = 0; a < ahead; ++a)
      place[a] = p + a * WL_BLOCK < end ? read_once(places + p + a * WL_BLOCK) : ~0u;
#pragma unroll
    for (int a = 0; a < ahead; ++a)
      x[a] = place[a] == ~0u ? T{} : from[place[a] >> 6];
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      word made;
      if constexpr (tensor_of<T>::parts == 2) {
        const float scaled = times_power(x[a], scale[place[a] & 63]);
        wrong = wrong || !splits(x[a], scaled);
        made = split(scaled);
      } else {
        made = x[a].bits;
      }
      if (p + a * WL_BLOCK < end)
        out[p + a * WL_BLOCK] = made;
    }
  }
  if constexpr (tensor_of<T>::parts == 2) {
    const int any = __syncthreads_or(wrong);
    if (it.thread() == 0)
      bad[it.block()] = any != 0;
  }
}

// Stores B in the layout that wgmma reads, in panels of N columns; a block converts a window of 32
// columns. bad[...] tells whether there are operands that only the CSR kernel multiplies correctly.
template <int N, class T>
WL_DEVICE void tensor_pack_dense(const item& it, i64 n, i64 k, i64 steps, const T* B, i64 B_ld,
                                 u8* packed, i32* bad) {
  using of = tensor_of<T>;
  constexpr int window = window_steps<N>(), octets = window * tensor_step / 8, strips = N / 32;
  static_assert(WL_BLOCK == 32 * octets, "a work-item has eight rows of a column");
  let_next_launch_begin();
  const i64 windows = (steps + window - 1) / window;
  const i64 where = it.block() / strips, panel = divide(where, windows);
  const int lane = it.thread() % 32, octet = it.thread() / 32 % 8;
  const i64 step = (where - panel * windows) * window + it.thread() / 256;
  const int local = int(it.block() % strips) * 32 + lane;
  const i64 column = panel * N + local, row = step * tensor_step + octet * 8;
  u8* const to = packed + (panel * steps + step) * dense_bytes<N, T>();
  T x[8];
  bool wrong = false;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const bool there = column < k && row + i < n;
    x[i] = there ? B[(row + i) * B_ld + column] : T{};
  }
#pragma unroll
  for (int i = 0; i < 8; ++i)
    wrong = wrong || !is_finite(widen(x[i]));
  // core (column / 8, octet % 2) of group octet / 2, and in it row column % 8
  const int core = (octet / 2 * of::parts * (N / 8) + local / 8) * 2 + octet % 2;
  uint4* const place = reinterpret_cast<uint4*>(to) + core * 8 + local % 8;
  if constexpr (of::parts == 2) {
    WL_SHARED(float, largest, WL_BLOCK);
    float mine = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      mine = fmaxf(mine, absolute(x[i]));
    largest[it.thread()] = mine;
    it.barrier();
#pragma unroll
    for (int o = 0; o < octets; ++o)
      mine = fmaxf(mine, largest[o * 32 + lane]);
    const bool usual = mine == 0.0f || (mine >= smallest_column && mine <= largest_column);
    wrong = wrong || !usual;
    const int e = mine != 0.0f && usual ? largest_exponent - exponent_of(mine) : 0;
    u32 both[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float scaled = times_power(x[i], e);
      wrong = wrong || !splits(x[i], scaled);
      both[i] = split(scaled);
    }
    if (step < steps) {
      place[0] = {__byte_perm(both[0], both[1], 0x5410), __byte_perm(both[2], both[3], 0x5410),
                  __byte_perm(both[4], both[5], 0x5410), __byte_perm(both[6], both[7], 0x5410)};
      place[N * 2] = {__byte_perm(both[0], both[1], 0x7632), __byte_perm(both[2], both[3], 0x7632),
                      __byte_perm(both[4], both[5], 0x7632), __byte_perm(both[6], both[7], 0x7632)};
      if (octet == 0)
        reinterpret_cast<float*>(to + tensor_groups * of::parts * N * 32)[local] =
            power_of_two(-e - sum_shift);
    }
  } else if (step < steps) {
    u32 two[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      two[i] = u32(x[2 * i + 1].bits) << 16 | x[2 * i].bits;
    place[0] = {two[0], two[1], two[2], two[3]};
  }
  const int any = __syncthreads_or(wrong);
  if (it.thread() == 0)
    bad[it.block()] = any != 0;
}

} // namespace wl
