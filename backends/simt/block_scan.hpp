// Running sums over the work-items of a block.
#pragma once
#include "simt/lanes.hpp"

namespace wl {

// The exclusive prefix sum over the work-items of a block, and the total. It begins and ends with a
// barrier, so that shared memory may be reused at once.
template <class S>
struct partial_sum_of {
  S before, all;
};
using partial_sum = partial_sum_of<i32>;
template <class S>
WL_DEVICE partial_sum_of<S> sums_before(const item& it, S mine) {
  constexpr int waves = WL_BLOCK / WL_WARP;
  WL_SHARED(S, of_wave, waves);
  const int lane = lane_of(it), wave = wave_of(it);
  S sum = mine;
  for (int by = 1; by < WL_WARP; by *= 2) {
    const S other = shuffle_up(it, sum, by);
    sum += lane >= by ? other : S(0);
  }
  it.barrier();
  if (lane == WL_WARP - 1)
    of_wave[wave] = sum;
  it.barrier();
  partial_sum_of<S> found{sum - mine, S(0)};
  for (int w = 0; w < waves; ++w) {
    found.before += w < wave ? of_wave[w] : S(0);
    found.all += of_wave[w];
  }
  return found;
}

} // namespace wl
