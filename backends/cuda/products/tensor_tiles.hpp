// Definitions shared by the kernels of the tensor cores: the layout of tiles, and the split of
// float32 into two numbers of 16 bits.
#pragma once
#include "simt/packs.hpp"
#include "cuda/products/dependent_launch.hpp"

namespace wl {

// A is cut into blocks of 64 rows and steps of 64 columns. In a block's step, lane l of warp w has
// of rows 16 w + l / 4 and 8 further, for each of four groups of 16 columns, the columns at 2 (l %
// 4), 1 further, and both again 8 further: the register layout of wgmma. A mask of 32 bits says
// which of them are entries, and their values lie one after the other, all lanes' of a step
// together.
constexpr int tensor_rows = 64, tensor_step = 64, tensor_groups = tensor_step / 16;
// Masks of 128 lanes, and the offsets of each lane's values among the values of the step.
constexpr int tensor_masks = 128 * 4, tensor_meta = tensor_masks + 128 * 2;
// The values of a step are padded to a multiple of this number, so that 16-bit values fill whole
// vectors.
constexpr int tensor_unit = 8;

// float32 is multiplied as two halves: x 2^e = high + 2^-11 low, where e brings the largest |x| of
// a row of A, or of a window of 64 or 128 rows of a column of B, into [2^14, 2^15). Both parts are
// normal numbers unless |x| is 2^-28 times less than that, so that no more than 2^-22 |x| is lost;
// `low` is scaled, and added up apart, for that. Where there are smaller entries, infinity or NaN,
// the product is not for tensor cores.
template <class T>
struct tensor_of {
  using part = T;
  using word = u16;
  static constexpr int parts = 1;
};
template <>
struct tensor_of<float> {
  using part = half;
  using word = u32;
  static constexpr int parts = 2;
};
// Steps of a window. Panels of 128 columns have no registers for sums that go on beyond a step.
template <int N>
WL_DEVICE constexpr int window_steps() {
  return N < 128 ? 2 : 1;
}
constexpr int largest_exponent = 14, low_shift = 11;
constexpr float least_normal = 0x1p-14f;
// Sums are kept 2^30 times smaller than the scale of A makes them, so that they are in the range
// of float32 wherever columns of B are between 2^-100 and 2^100.
constexpr int sum_shift = 30;
constexpr float smallest_column = 0x1p-100f, largest_column = 0x1p100f;

// 2^e for -149 <= e <= 127
WL_DEVICE float power_of_two(int e) {
  return e > -127 ? float_of(u32(e + 127) << 23) : float_of(1u << (e + 149));
}
// v 2^e for |e| < 250, rounded at most once if the result is a normal number or |v| >= 1
WL_DEVICE float times_power(float v, int e) {
  const int h = e / 2;
  return v * power_of_two(h) * power_of_two(e - h);
}
// The largest e with 2^e <= v, v > 0 and finite.
WL_DEVICE int exponent_of(float v) {
  const int field = int(bits_of(v) >> 23);
  return field ? field - 127 : int(bits_of(v * 0x1p32f) >> 23) - 127 - 32;
}

WL_DEVICE bool is_finite(float v) { return (bits_of(v) & 0x7f800000u) != 0x7f800000u; }
WL_DEVICE float absolute(float v) { return float_of(bits_of(v) & 0x7fffffffu); }

// The two halves of a number that has been scaled: low << 16 | high.
WL_DEVICE u32 split(float scaled) {
  const half high = half_of(scaled);
  const half low = half_of((scaled - widen(high)) * float(1 << low_shift));
  return u32(low.bits) << 16 | high.bits;
}
// Whether that is all of x but 2^-22 of it.
WL_DEVICE bool splits(float x, float scaled) {
  return x == 0.0f || absolute(scaled) >= least_normal;
}

// Bytes of a step of B: cores in wgmma's layout, and the factors of the columns' sums.
template <int N, class T>
WL_DEVICE constexpr int dense_bytes() {
  using of = tensor_of<T>;
  return tensor_groups * of::parts * N * 32 + (of::parts == 2 ? N * 4 : 0);
}

// a / b for nonnegative numbers, in 32 bits where that is enough: 64 bits take five times as long.
WL_DEVICE i64 divide(i64 a, i64 b) { return (a | b) >> 32 ? a / b : i64(u32(a) / u32(b)); }
// Which of the equal shares of `units` that `shares` get the unit is in, and where one begins.
WL_DEVICE i64 share_of(i64 unit, i64 units, i64 shares) {
  return divide((unit + 1) * shares - 1, units);
}
WL_DEVICE i64 begin_of(i64 share, i64 units, i64 shares) { return divide(share * units, shares); }

// A step of a tile of C: of which panel, which tile of rows in that, which 64 columns of A.
struct tile_step {
  int row_tiles, steps;
  int panel, row_tile, step;

  WL_DEVICE tile_step(i64 unit, int row_tiles, int steps) : row_tiles(row_tiles), steps(steps) {
    const i64 tile = divide(unit, steps);
    step = int(unit - tile * steps);
    panel = int(divide(tile, row_tiles));
    row_tile = int(tile) - panel * row_tiles;
  }
  // To the next; a division each time took longer than the product of a step.
  WL_DEVICE void advance() {
    if (++step < steps)
      return;
    step = 0;
    if (++row_tile == row_tiles)
      row_tile = 0, ++panel;
  }
};

// y = alpha v + beta y for two neighbours, of which `count` are there.
template <class T>
WL_DEVICE void store_two(T* y, float first, float second, i64 count, bool pairs, float alpha,
                         float beta) {
  const float v[2] = {first, second};
  if (pairs && count > 1) {
    store_pack<T, 2>(y, v, alpha, beta);
  } else {
    if (count > 0)
      store_narrowed(y[0], v[0], alpha, beta);
    if (count > 1)
      store_narrowed(y[1], v[1], alpha, beta);
  }
}

} // namespace wl
