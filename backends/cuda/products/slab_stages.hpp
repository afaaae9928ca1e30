// Slabs of two dense operands that are loaded one after the other into the shared memory of a
// block, in two stages: while one slab is used, the next one is copied.
//
// Warps advance independently, as far as the slabs allow: their amounts of work in a slab differ,
// and with a block barrier between slabs a fifth of the time was spent waiting. Two barriers of
// each stage count arrivals. `there`: threads that copy a slab arrive when their part has arrived.
// `left`: each warp arrives when it has used a slab. Phase s / 2 of the barriers of stage s % 2 is
// for slab s. The first warps that reach the middle of a slab copy the next one. Every warp, with
// or without entries in a slab, does for s = 0, 1, ..:
//
//   1. waits for `there` of s,
//   2. uses half of s, and takes a number,
//   3. if it is one of the lowest numbers, waits for `left` of s - 1 and copies a part of s + 1,
//   4. uses the rest of s, and arrives at `left` of s.
//
// There is no deadlock. Of all warps that wait, take one that is the least far in this order. In
// step 1 it waits for copies that other warps issue in step 3 of s - 1, for any assignment of
// numbers: all warps are beyond that step. In step 3 it waits for arrivals in step 4 of s - 1: all
// warps are beyond that step too. Copies complete by themselves. A parity identifies the phase: the
// phase of `there` for s + 2 does not end before all have arrived in step 4 of s, and the phase of
// `left` for s + 1 not before all have arrived in step 4 of s + 1, the waiting warp among them. The
// numbers of s + 2 come from the counter of s, after all numbers of s are taken.
#pragma once
#include "cuda/products/counting_barriers.hpp"
#include "cuda/products/tile_rows.hpp"

namespace wl {

// The number of stages, and the bytes of their barriers, which follow the stages; the counters
// follow the barriers.
constexpr int SLAB_STAGES = 2, SLAB_BARRIERS = 2 * SLAB_STAGES * BARRIER_BYTES;
// Warps that copy a slab. Gradients with 1 % density and 16 heads of 64 take 209 microseconds with
// eight, 211 with four and 216 with all sixteen; the product takes 65, 64 and 66.
constexpr int COPYING_WARPS = 8;

// HEIGHT rows of each operand at a time.
template <int DIM, int HEIGHT, int WHOLE, int FACTS, class T>
struct slab_pair {
  static constexpr int warps = WL_BLOCK / 32,
                       copying = warps < COPYING_WARPS ? warps : COPYING_WARPS,
                       threads = 32 * copying;
  using rows = tile_rows<DIM, WHOLE, threads>;
  static constexpr int of_slab = rows::size(HEIGHT), of_stage = 2 * of_slab + FACTS * HEIGHT;
  rows_of<T> one, other;
  i64 k, p;
  const u8* facts; // FACTS bytes of each row
  int slabs;
  unsigned char* memory;

  WL_DEVICE unsigned char* stage(int s) const { return memory + s % SLAB_STAGES * of_stage; }
  // The same, but opaque to the compiler, so that it stays in one register and is not recomputed
  // for each load.
  WL_DEVICE const unsigned char* stage_at_once(int s) const {
    u32 at = shared_offset(stage(s));
    asm volatile("" : "+r"(at));
    return shared_pointer(at);
  }
  WL_DEVICE u32 there(int s) const {
    return shared_offset(memory + SLAB_STAGES * of_stage + s % SLAB_STAGES * BARRIER_BYTES);
  }
  WL_DEVICE u32 left(int s) const { return there(s) + SLAB_STAGES * BARRIER_BYTES; }
  WL_DEVICE static u32 parity(int s) { return u32(s) / SLAB_STAGES % 2; }

  WL_DEVICE int* counter(int s) const {
    return reinterpret_cast<int*>(memory + SLAB_STAGES * of_stage + SLAB_BARRIERS) + s % 2;
  }

  // Issues the copies of the first slabs.
  WL_DEVICE void begin(const item& it) const {
    if (it.thread() == 0)
      for (int s = 0; s < SLAB_STAGES; ++s) {
        barrier_init(there(s), threads);
        barrier_init(left(s), warps);
        *counter(s) = 0;
      }
    it.barrier();
    for (int s = 0; s < SLAB_STAGES && s < slabs; ++s) {
      const int first = s * copying < warps - copying ? s * copying : warps - copying;
      const int t = it.thread() - 32 * first;
      if (t >= 0 && t < threads)
        bring(t, s);
    }
  }
  // In the middle of slab s: issues copies of a part of the next slab if the warp is one of the
  // first to get there. The copies of the first two slabs are issued already.
  WL_DEVICE void copy_next(int s, int lane) const {
    if (s == 0 || s + 1 >= slabs)
      return;
    int before = lane == 0 ? count_up(counter(s)) : 0;
    before = shuffle(before, 0) - (s - 1) / 2 * warps;
    if (before < copying) {
      wait_until_left(s - 1);
      bring(32 * before + lane, s + 1);
    }
  }
  WL_DEVICE void wait_until_there(int s) const { wait_for(there(s), parity(s)); }
  // The barrier orders the work of all lanes of a warp before the arrival of one of them.
  WL_DEVICE void leave(int s, int lane) const {
    __syncwarp();
    if (lane == 0)
      arrive(left(s));
  }
  WL_DEVICE void wait_until_left(int s) const { wait_for(left(s), parity(s)); }

  // Copies HEIGHT rows from `first` on; missing rows become zeros.
  WL_DEVICE static void bring(int t, unsigned char* to, const rows_of<T>& from, i64 first,
                              i64 columns) {
    constexpr int apart = rows::apart;
    const int row = t / rows::chunks, chunk = t % rows::chunks;
    if constexpr (WHOLE) {
      const T* place = from.row(first + row) + chunk * 8;
      const i64 step = apart * from.ld, rest = from.count - first;
      const int there = 8 * chunk >= columns ? 0 : rest < HEIGHT ? int(rest) : HEIGHT;
      const u32 at = shared_offset(to + chunk_at<DIM>(row, chunk));
#pragma unroll
      for (int r = 0; r < HEIGHT; r += apart) {
        if (r + apart <= HEIGHT || row + r < HEIGHT)
          copy_16_bytes_if(row + r < there, at + rows::size(r), place);
        place += step;
      }
    } else {
#pragma unroll 1
      for (int r = 0; r < HEIGHT; r += apart)
        if (r + row < HEIGHT)
          rows::template bring<apart>(t, to + rows::size(r), from, first + r, columns);
    }
  }
  // Issues the copies of a thread's part of a slab.
  WL_DEVICE void bring(int t, int s) const {
    // The addresses of copies are not computed ahead: they would take registers from products.
    asm volatile("" : "+r"(t), "+r"(s));
    unsigned char* const to = stage(s);
    bring(t, to, one, i64(s) * HEIGHT, k);
    bring(t, to + of_slab, other, i64(s) * HEIGHT, p);
    if constexpr (FACTS > 0)
      for (int i = t * 16; i < FACTS * HEIGHT; i += threads * 16)
        copy_16_bytes_if(true, shared_offset(to + 2 * of_slab + i),
                         facts + i64(s) * (FACTS * HEIGHT) + i);
    if constexpr (WHOLE) {
      arrive_when_copied(there(s));
    } else { // its own stores precede its own arrival
      commit_copies();
      wait_for_copies<0>();
      arrive(there(s));
    }
  }
};

} // namespace wl
