// C = alpha A B + beta C on tensor cores of Hopper: A is loaded in sparse form and multiplied in
// dense form.
//
// A tile of C has 64 W rows and N columns. A block consists of W warpgroups that multiply and one
// that copies. Each block computes an equal share of all steps of all tiles, one after the other.
// If a tile was cut between blocks, tensor_join adds up its parts in their order.
#pragma once
#include "cuda/products/tensor_tiles.hpp"
#include "cuda/products/hopper_instructions.hpp"

namespace wl {

constexpr int most_stages = 16;

// Registers of a thread that multiplies: the budget of all W + 1 warpgroups, less the registers of
// the copying one. A request for more would wait forever.
constexpr int copier_registers = 24;
template <int W>
WL_DEVICE constexpr int registers_of() {
  const int given = 65536 / (128 * (W + 1)) / 8 * 8;
  return (given * (W + 1) - copier_registers) / W / 8 * 8;
}

// The sums of a tile of 64 x N that a thread of a warpgroup holds.
template <int N, class T>
WL_DEVICE void store_tile(const float* sums, int thread, i64 row, i64 column, i64 m, i64 k,
                          const i32* exponents, T* C, i64 C_ld, float alpha, float beta) {
  const int lane = thread % 32;
  const bool pairs = reinterpret_cast<u64>(C) % (2 * sizeof(T)) == 0 && C_ld % 2 == 0;
  row += thread / 32 * 16 + lane / 4;
  column += lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half, row += 8) {
    if (row >= m)
      continue;
    const int e = tensor_of<T>::parts == 2 ? sum_shift - exponents[row] : 0;
    const float first = power_of_two(e / 2), second = power_of_two(e - e / 2);
#pragma unroll
    for (int j = 0; j < N / 8; ++j)
      store_two(C + row * C_ld + column + 8 * j, sums[4 * j + 2 * half] * first * second,
                sums[4 * j + 2 * half + 1] * first * second, k - column - 8 * j, pairs, alpha,
                beta);
  }
}

template <int N, int W, class T>
WL_DEVICE void tensor_product(const item& it, i64 m, i64 k, i64 row_blocks, i64 steps, i64 panels,
                              i64 stages, i64 value_bytes, const u8* masks, const i32* starts,
                              const u8* values, const i32* exponents, const u8* dense,
                              const i32* bad_rows, i64 bad_row_count, const i32* bad_columns,
                              i64 bad_column_count, i32* verdict, T* C, i64 C_ld, float alpha,
                              float beta, u8* partial) {
  using of = tensor_of<T>;
  using part = typename of::part;
  using word = typename of::word;
  static_assert(WL_BLOCK == 128 * (W + 1), "a warpgroup copies");
  constexpr u32 of_dense = u32(dense_bytes<N, T>());
  extern __shared__ __align__(128) u8 shared[];
  const int thread = it.thread(), group = thread / 128;
  const u32 barriers = shared_address(shared), first_stage = barriers + 16 * most_stages;
  let_next_launch_begin();
  const u32 of_rows = u32(tensor_meta + value_bytes), of_stage = of_dense + W * of_rows;

  if (thread == 0) {
    for (int s = 0; s < int(stages); ++s) {
      barrier_init(barriers + 16 * s, 4);
      barrier_init(barriers + 16 * s + 8, 4 * W);
    }
    barriers_are_ready();
  }
  wait_for_launch_before();
  i32 wrong = 0;
#pragma unroll 4
  for (i64 i = thread; i < bad_row_count; i += WL_BLOCK)
    wrong |= bad_rows[i];
#pragma unroll 4
  for (i64 i = thread; i < bad_column_count; i += WL_BLOCK)
    wrong |= bad_columns[i];
  const bool leave = __syncthreads_or(wrong);
  if (it.block() == 0 && thread == 0)
    *verdict = leave;
  if (leave)
    return;

  const int row_tiles = int((row_blocks + W - 1) / W);
  const i64 units = row_tiles * panels * steps;
  const i64 begin = begin_of(it.block(), units, it.blocks());
  const int count_of_units = int(begin_of(it.block() + 1, units, it.blocks()) - begin);
  tile_step now(begin, row_tiles, int(steps));
  int slot = 0;
  u32 phase = 0;

  if (group == W) {
    give_registers<copier_registers>();
    // Each of four warps copies a quarter of B, and the part of A for one of the other warpgroups:
    // a single warp took longer for all copies than the product takes.
    const int warp = thread % 128 / 32;
    constexpr u32 quarter = of_dense / 4;
    static_assert(quarter % 16 == 0, "copies are of 16 bytes");
    if (thread % 32)
      return;
    tile_step next = now;
    int left = count_of_units;
    // the position of the values of a warpgroup's rows, several steps ahead
    const auto next_range = [&] {
      int2 range{-1, -1};
      const i64 block = i64(next.row_tile) * W + warp;
      if (left > 0 && warp < W && block < row_blocks) {
        const i32* const at = starts + block * steps + next.step;
        range = {at[0], at[1]};
      }
      next.advance();
      --left;
      return range;
    };
    constexpr int ahead = 3;
    int2 ranges[ahead];
#pragma unroll
    for (int a = 0; a < ahead; ++a)
      ranges[a] = next_range();
    for (int unit = 0; unit < count_of_units; ++unit) {
      const int2 range = ranges[0];
#pragma unroll
      for (int a = 1; a < ahead; ++a)
        ranges[a - 1] = ranges[a];
      ranges[ahead - 1] = next_range();
      const bool mine = range.x >= 0;
      const u32 bytes = mine ? u32(range.y - range.x) * u32(tensor_unit * sizeof(word)) : 0;
      const u32 full = barriers + 16 * slot, at = first_stage + slot * of_stage;
      const u8* const of_B = dense + (now.panel * steps + now.step) * of_dense + warp * quarter;
      const i64 block = i64(now.row_tile) * W + warp;
      wait_for(full + 8, phase ^ 1);
      arrive_expecting(full, quarter + (mine ? bytes + tensor_meta : 0));
      copy_to_shared(at + warp * quarter, of_B, quarter, full);
      if (mine) {
        const u32 to = at + of_dense + warp * of_rows;
        copy_to_shared(to, masks + (block * steps + now.step) * tensor_meta, tensor_meta, full);
        if (bytes)
          copy_to_shared(to + tensor_meta, values + i64(range.x) * (tensor_unit * sizeof(word)),
                         bytes, full);
      }
      now.advance();
      if (++slot == stages)
        slot = 0, phase ^= 1;
    }
    return;
  }

  take_registers<registers_of<W>()>();
  const int mine = thread % 128;
  constexpr int count = N / 2; // sums of a thread
  float sums[count], lows[of::parts == 2 ? count : 1], total[of::parts == 2 ? count : 1];
#pragma unroll
  for (int i = 0; i < count; ++i)
    sums[i] = lows[of::parts == 2 ? i : 0] = total[of::parts == 2 ? i : 0] = 0.0f;
  int first_step = now.step, parts = 0;
  bool fresh = true;
  // Two warpgroups with simultaneous products would also wait at the same time: instead one unpacks
  // and adds up while the other multiplies.
  constexpr bool in_turn = W == 2;
  const auto turn_of = [&](int g) { return 1 + g; };
  if (in_turn && group == W - 1)
    named_arrive(turn_of(0));
  for (int unit = 0; unit < count_of_units; ++unit) {
    const i64 block = i64(now.row_tile) * W + group;
    const bool last_step = now.step + 1 == now.steps;
    const bool ends = last_step || unit + 1 == count_of_units;
    const u32 full = barriers + 16 * slot, at = first_stage + slot * of_stage;
    wait_for(full, phase);
    const u32 rows = at + of_dense + group * of_rows;
    // Below the last row the mask is 0. There is no branch, so that sums stay in their registers.
    const u32 mask = block < row_blocks ? shared_word(rows + mine * 4) : 0;
    const u32 from =
        rows + tensor_meta + shared_short(rows + tensor_masks + mine * 2) * u32(sizeof(word));
    const u64 b = tile_descriptor(at);
    u32 high[tensor_groups][4], low[tensor_groups][4];
#pragma unroll
    for (int g = 0; g < tensor_groups; ++g) {
      const u32 before = __popc(mask & ((1u << 8 * g) - 1));
      u32 x[8];
      unpack<word>(mask >> 8 * g, from + before * u32(sizeof(word)), x);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        high[g][i] = __byte_perm(x[2 * i], x[2 * i + 1], 0x5410);
        if constexpr (of::parts == 2)
          low[g][i] = __byte_perm(x[2 * i], x[2 * i + 1], 0x7632);
      }
    }
    if (in_turn)
      named_wait(turn_of(group));
    wgmma_fence();
#pragma unroll
    for (int g = 0; g < tensor_groups; ++g) {
      constexpr u32 of_group = of::parts * N * 32 >> 4;
      const u32 add = g > 0 || !fresh;
      tile_product<N, part>::add(sums, high[g], b + g * of_group, add);
      if constexpr (of::parts == 2) {
        tile_product<N, part>::add(lows, high[g], b + g * of_group + (N * 32 >> 4), add);
        tile_product<N, part>::add(lows, low[g], b + g * of_group, 1);
      }
    }
    wgmma_commit();
    if (in_turn && (group + 1 < W || unit + 1 < count_of_units))
      named_arrive(turn_of((group + 1) % W));
    wgmma_wait<0>();
#pragma unroll
    for (int g = 0; g < tensor_groups; ++g) {
      keep(high[g]);
      if constexpr (of::parts == 2)
        keep(low[g]);
    }
    keep(sums);
    fresh = false;
    if constexpr (of::parts == 2) {
      keep(lows);
      if (ends || now.step % window_steps<N>() == window_steps<N>() - 1) {
        fresh = true;
        const u32 scales = at + tensor_groups * of::parts * N * 32 + mine % 4 * 8;
#pragma unroll
        for (int j = 0; j < N / 8; ++j) {
          const float2 scale = shared_pair(scales + j * 32);
#pragma unroll
          for (int z = 0; z < 4; ++z) {
            const int i = 4 * j + z;
            const float sum = fmaf(lows[i], 1.0f / (1 << low_shift), sums[i]);
            total[i] = fmaf(sum, z % 2 ? scale.y : scale.x, total[i]);
          }
        }
      }
    }
    __syncwarp();
    if (mine % 32 == 0)
      arrive(full + 8);
    if (++slot == stages)
      slot = 0, phase ^= 1;
    if (ends) {
      float* const made = of::parts == 2 ? total : sums;
      if (first_step == 0 && last_step) {
        store_tile<N, T>(made, mine, block * tensor_rows, i64(now.panel) * N, m, k, exponents, C,
                         C_ld, alpha, beta);
      } else { // the part of the first or of the last tile
        const i64 line = 2 * it.block() + parts;
        float4* const to =
            reinterpret_cast<float4*>(partial) + (line * W + group) * (count / 4) * 128;
#pragma unroll
        for (int j = 0; j < count / 4; ++j)
          if (8 * j < k - i64(now.panel) * N)
            to[j * 128 + mine] = {made[4 * j], made[4 * j + 1], made[4 * j + 2], made[4 * j + 3]};
      }
      first_step = 0;
      parts = 1;
      fresh = true;
      if constexpr (of::parts == 2)
#pragma unroll
        for (int i = 0; i < count; ++i)
          total[i] = 0.0f;
    }
    now.advance();
  }
}

} // namespace wl
