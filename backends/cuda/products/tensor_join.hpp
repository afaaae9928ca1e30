// The work after the kernel of the tensor cores: it adds up tiles that were cut between blocks, or,
// if tensor cores cannot multiply the operands correctly, it multiplies all entries one by one.
#pragma once
#include "cuda/products/tensor_tiles.hpp"

namespace wl {

// A wave processes a row; of 128 of its columns each lane processes four.
template <class T, class I>
WL_DEVICE void tensor_by_entry(const item& it, i64 m, i64 k, const I* indptr, const I* indices,
                               const T* values, const T* B, i64 B_ld, T* C, i64 C_ld, float alpha,
                               float beta) {
  constexpr int each = 4, width = WL_WARP * each, waves = WL_BLOCK / WL_WARP;
  const int lane = lane_of(it);
  const i64 tiles = (k + width - 1) / width;
  for (i64 w = it.block() * waves + wave_of(it); w < m * tiles; w += it.blocks() * waves) {
    const i64 row = w / tiles, first = w % tiles * width + lane;
    float sums[each] = {};
    for (i64 begin = indptr[row], end = indptr[row + 1]; begin < end; begin += WL_WARP) {
      const int count = end - begin < WL_WARP ? int(end - begin) : WL_WARP;
      const i64 e = begin + (lane < count ? lane : 0);
      const I column = read_once(indices + e);
      const float value = widen(read_once(values + e));
#pragma unroll 4
      for (int s = 0; s < count; ++s) {
        const T* const of_row = B + i64(shuffle(column, s)) * B_ld;
        const float factor = shuffle(value, s);
#pragma unroll
        for (int j = 0; j < each; ++j) {
          const i64 c = first + j * WL_WARP; // columns beyond k are added up but not stored
          sums[j] += factor * widen(of_row[c < k ? c : 0]);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < each; ++j)
      if (first + j * WL_WARP < k)
        store_narrowed(C[row * C_ld + first + j * WL_WARP], sums[j], alpha, beta);
  }
}

template <int N, int W, class T, class I>
WL_DEVICE void tensor_join(const item& it, i64 m, i64 k, i64 row_blocks, i64 steps, i64 panels,
                           i64 shares, const i32* exponents, const i32* verdict, const I* indptr,
                           const I* indices, const T* values, const T* B, i64 B_ld, T* C, i64 C_ld,
                           float alpha, float beta, const u8* partial) {
  wait_for_launch_before();
  if (*verdict) {
    tensor_by_entry(it, m, k, indptr, indices, values, B, B_ld, C, C_ld, alpha, beta);
    return;
  }
  constexpr int quads = N / 8; // groups of four sums of a thread
  constexpr i64 each = W * quads * 128, slices = each / WL_BLOCK;
  static_assert(each % WL_BLOCK == 0, "a block has a slice of a tile");
  const i64 row_tiles = (row_blocks + W - 1) / W, tiles = row_tiles * panels;
  const i64 units = tiles * steps;
  const bool pairs = reinterpret_cast<u64>(C) % (2 * sizeof(T)) == 0 && C_ld % 2 == 0;
  const float4* const lines = reinterpret_cast<const float4*>(partial);
  for (i64 slice = it.block(); slice < tiles * slices; slice += it.blocks()) {
    const i64 tile = slice / slices;
    const int place = int(slice - tile * slices) * WL_BLOCK + it.thread();
    const int thread = place % 128, j = place / 128 % quads;
    const i64 panel = divide(tile, row_tiles), column = panel * N + j * 8 + thread % 4 * 2;
    if (column >= k)
      continue; // no block stored a part of this tile
    const i64 first = share_of(tile * steps, units, shares);
    const i64 last = share_of((tile + 1) * steps - 1, units, shares);
    if (first == last)
      continue; // its block stored the whole tile
    // the part at the start of a share is in its first line
    const bool begins = begin_of(first, units, shares) >= tile * steps;
    float4 sum = lines[(2 * first + !begins) * each + place];
#pragma unroll 4
    for (i64 s = first + 1; s <= last; ++s) {
      const float4 other = lines[2 * s * each + place];
      sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
    }
    const i64 block = (tile - panel * row_tiles) * W + place / 128 / quads;
    const i64 row = block * tensor_rows + thread / 32 * 16 + thread % 32 / 4;
    const float v[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const i64 r = row + 8 * half;
      if (r >= m)
        continue;
      const int e = tensor_of<T>::parts == 2 ? sum_shift - exponents[r] : 0;
      store_two(C + r * C_ld + column, times_power(v[2 * half], e), times_power(v[2 * half + 1], e),
                k - column, pairs, alpha, beta);
    }
  }
}

} // namespace wl
