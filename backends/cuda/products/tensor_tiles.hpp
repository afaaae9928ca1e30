// Definitions that the kernels of the tensor cores share: the layout of tiles, and the split of
// float32 into two 16-bit numbers.
#pragma once
#include "simt/packs.hpp"
#include "cuda/products/dependent_launch.hpp"

namespace wl {

// A is cut into blocks of 64 rows and steps of 64 columns. In a step of a block, lane l of warp w
// holds elements of rows 16 w + l / 4 and 16 w + l / 4 + 8. For each of four groups of 16 columns
// these are columns 2 (l % 4), the next one, and both plus 8: the register layout of wgmma. A mask
// of 32 bits marks the elements that are entries. The values of the entries are contiguous, the
// values of all lanes of a step together.
constexpr int tensor_rows = 64, tensor_step = 64, tensor_groups = tensor_step / 16;
// Masks of 128 lanes, and for each lane the offset of its values among the values of the step.
constexpr int tensor_masks = 128 * 4, tensor_meta = tensor_masks + 128 * 2;
// The values of a step are padded to a multiple of this number, so that 16-bit values fill whole
// vectors.
constexpr int tensor_unit = 8;

// float32 is multiplied as two halves: x 2^e = high + 2^-11 low. The exponent e brings the largest
// |x| of a row of A, or of a window of 64 or 128 rows of a column of B, into [2^14, 2^15). Both
// parts are normal numbers unless |x| is smaller than that by a factor of 2^-28, so that no more
// than 2^-22 |x| is lost; for this, `low` is scaled and added up separately. If there are smaller
// entries, infinities or NaN, tensor cores do not compute the product.
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
// Steps of a window. With panels of 128 columns there are no registers for sums that continue
// beyond a step.
template <int N>
WL_DEVICE constexpr int window_steps() {
  return N < 128 ? 2 : 1;
}
constexpr int largest_exponent = 14, low_shift = 11;
constexpr float least_normal = 0x1p-14f;
// Sums are 2^30 times smaller than the scale of A alone would make them, so that they are in the
// range of float32 if the columns of B are between 2^-100 and 2^100.
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
// Whether the two halves represent x up to 2^-22 |x|.
WL_DEVICE bool splits(float x, float scaled) {
  return x == 0.0f || absolute(scaled) >= least_normal;
}

// Bytes of a step of B: cores in wgmma's layout, and the factors of the sums of the columns.
template <int N, class T>
WL_DEVICE constexpr int dense_bytes() {
  using of = tensor_of<T>;
  return tensor_groups * of::parts * N * 32 + (of::parts == 2 ? N * 4 : 0);
}

// a / b for nonnegative numbers, with 32 bits if they suffice: a division of 64 bits takes five
// times as long.
WL_DEVICE i64 divide(i64 a, i64 b) { return (a | b) >> 32 ? a / b : i64(u32(a) / u32(b)); }
// The number of the share that contains a unit, if `units` are divided into equal `shares`, and the
// first unit of a share.
WL_DEVICE i64 share_of(i64 unit, i64 units, i64 shares) {
  return divide((unit + 1) * shares - 1, units);
}
WL_DEVICE i64 begin_of(i64 share, i64 units, i64 shares) { return divide(share * units, shares); }

// A step of a tile of C: the panel, the tile of rows in it, and the 64 columns of A.
struct tile_step {
  int row_tiles, steps;
  int panel, row_tile, step;

  WL_DEVICE tile_step(i64 unit, int row_tiles, int steps) : row_tiles(row_tiles), steps(steps) {
    const i64 tile = divide(unit, steps);
    step = int(unit - tile * steps);
    panel = int(divide(tile, row_tiles));
    row_tile = int(tile) - panel * row_tiles;
  }
  // Advances to the next step; a division in each step took longer than the product of a step.
  WL_DEVICE void advance() {
    if (++step < steps)
      return;
    step = 0;
    if (++row_tile == row_tiles)
      row_tile = 0, ++panel;
  }
};

// y = alpha v + beta y for two adjacent elements, of which `count` exist.
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
