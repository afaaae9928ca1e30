// Running sums over the work-items of a block.
#pragma once
#include "lanes.hpp"

namespace wl {

// The sum of what the work-items before this one have, and that of all. Everybody has left earlier
// uses of shared memory when somebody comes back from here.
struct partial_sum {
  i32 before, all;
};
WL_DEVICE partial_sum sums_before(const item& it, i32 mine) {
  constexpr int waves = WL_BLOCK / WL_WARP;
  WL_SHARED(i32, of_wave, waves);
  const int lane = lane_of(it), wave = wave_of(it);
  i32 sum = mine;
  for (int by = 1; by < WL_WARP; by *= 2) {
    const i32 other = shuffle_up(it, sum, by);
    sum += lane >= by ? other : 0;
  }
  it.barrier();
  if (lane == WL_WARP - 1)
    of_wave[wave] = sum;
  it.barrier();
  partial_sum found{sum - mine, 0};
  for (int w = 0; w < waves; ++w) {
    found.before += w < wave ? of_wave[w] : 0;
    found.all += of_wave[w];
  }
  return found;
}

} // namespace wl
