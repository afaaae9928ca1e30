// Rows of dense operands for tensor cores: as tiles of 8 x 8 cores, with a float as two halves.
//
// A float is hi + lo / 2^11, both with 11 bits, after its row was scaled by a power of two so that
// its largest number is in [2^14, 2^15). If every other number but zero is then at least 2^-14, hi
// is a normal half and hi + lo / 2^11 differs from the number by less than 2^-22 of it. Rows for
// which this does not hold, rows with Inf or NaN, and rows beyond 2^60 are reported; the
// multiplying kernel then leaves the whole product to a kernel of floats.
#pragma once
#include "simt/packs.hpp"

namespace wl {

constexpr float LOW_PART = 2048.0f; // the factor of the lower half

// Cores of 8 rows x 8 columns, 128 bytes each, with contiguous rows. The order of cores is: the two
// cores of 16 columns, then the next 8 rows, then the next 16 columns, then the other part, then
// the next H rows. Positions count 16-bit numbers.
template <int KP, int H, int PARTS>
struct tile_places {
  static constexpr int of_16 = H * 16, of_part = H * KP, of_tile = PARTS * of_part;
  WL_DEVICE static i64 of(i64 row, int chunk) { // 8 columns
    const int r = int(row % H);
    return row / H * of_tile + chunk / 2 * of_16 + (r / 8 * 2 + chunk % 2) * 64 + r % 8 * 8;
  }
};

WL_DEVICE float magnitude(float v) { return float_of(bits_of(v) & 0x7fffffffu); }

struct row_scale {
  float to, back;
  bool good;
  // For a row with these largest and smallest nonzero absolute values.
  WL_DEVICE row_scale(float largest, float smallest) : to(1.0f), back(1.0f), good(true) {
    if (largest == 0.0f)
      return;
    const u32 exponent = bits_of(largest) >> 23;
    good = exponent >= 127 - 60 && exponent <= 127 + 60;
    if (!good)
      return;
    to = float_of((127 + 14 + 127 - exponent) << 23);
    back = float_of((exponent - 14) << 23);
    good = smallest * to >= 0x1p-14f;
  }
};

// One operand: rows of k columns, and the arrays for its tiles and the scales of its rows.
template <class T>
struct tile_source {
  i64 rows, padded;
  const T* data;
  i64 ld;
  u8* packed;
  float* scales;
};

// A lane packs a quarter of a row, four lanes a row, a wave eight rows: eight adjacent lanes write
// a core. Columns first .. first + KP of two operands are packed; the scale depends on all k
// columns. `wide` has a word for eight rows, which tells whether two halves cannot represent one of
// them. WHOLE: k is at most KP; rows are then loaded once.
template <int KP, int H, int PARTS, int E, int WHOLE, class T>
WL_DEVICE void tile_pack(const item& it, i64 k, i64 first, i64 C_rows, i64 C_padded, const T* C,
                         i64 C_ld, u8* C_packed, float* C_scales, i64 B_rows, i64 B_padded,
                         const T* B, i64 B_ld, u8* B_packed, float* B_scales, i32* wide) {
  constexpr int waves = WL_BLOCK / WL_WARP, quarters = WL_WARP / 8, chunks = KP / 8 / quarters;
  const tile_source<T> of_C{C_rows, C_padded, C, C_ld, C_packed, C_scales};
  const tile_source<T> of_B{B_rows, B_padded, B, B_ld, B_packed, B_scales};
  const int lane = lane_of(it), r = lane % 8, q = lane / 8;
  const i64 eights = (C_padded + B_padded) / 8;
  for (i64 u = it.block() * waves + wave_of(it); u < eights; u += it.blocks() * waves) {
    const bool is_C = u * 8 < C_padded;
    const tile_source<T> source = is_C ? of_C : of_B;
    const i64 row = (is_C ? u : u - C_padded / 8) * 8 + r;
    const T* const of_row = source.data + (row < source.rows ? row : 0) * source.ld;
    const i64 count = row < source.rows ? k : 0;
    pack<T, E> loaded[chunks][8 / E];
#pragma unroll
    for (int i = 0; i < chunks; ++i)
#pragma unroll
      for (int e = 0; e < 8 / E; ++e) {
        const i64 c = first + (i * quarters + q) * 8 + e * E;
        loaded[i][e] = load_part<0, T, E>(c < count, of_row, c);
      }
    float to = 1.0f;
    if constexpr (PARTS == 2) {
      float largest = 0.0f, smallest = 0x1p127f;
      bool finite = true;
      const auto examine = [&](const pack<T, E>& some) {
#pragma unroll
        for (int e = 0; e < E; ++e) {
          const float size = magnitude(some.at[e]);
          finite = finite && size < float_of(0x7f800000u);
          largest = size > largest ? size : largest;
          smallest = size != 0.0f && size < smallest ? size : smallest;
        }
      };
      if constexpr (WHOLE) {
#pragma unroll
        for (int i = 0; i < chunks; ++i)
#pragma unroll
          for (int e = 0; e < 8 / E; ++e)
            examine(loaded[i][e]);
      } else {
        for (i64 c = q * E; c < count; c += quarters * E)
          examine(load_pack<T, E>(of_row + c));
      }
#pragma unroll
      for (int d = 8; d < WL_WARP; d *= 2) {
        const float up = shuffle_xor(it, largest, d), down = shuffle_xor(it, smallest, d);
        largest = up > largest ? up : largest;
        smallest = down < smallest ? down : smallest;
      }
      const row_scale scale(largest, smallest);
      to = scale.to;
      const bool bad = ballot(!finite || !scale.good) != 0;
      if (lane == 0)
        wide[u] = bad;
      if (q == 0)
        source.scales[row] = scale.back;
    }
    u16* const out = reinterpret_cast<u16*>(source.packed);
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      pack<u16, 8> high, low;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const T number = loaded[i][e / E].at[e % E];
        if constexpr (PARTS == 2) {
          const float scaled = number * to;
          const half up = half_of(scaled);
          high.at[e] = up.bits;
          low.at[e] = half_of((scaled - widen(up)) * LOW_PART).bits;
        } else {
          high.at[e] = number.bits;
        }
      }
      u16* const place = out + tile_places<KP, H, PARTS>::of(row, i * quarters + q);
      *reinterpret_cast<pack<u16, 8>*>(place) = high;
      if constexpr (PARTS == 2)
        *reinterpret_cast<pack<u16, 8>*>(place + tile_places<KP, H, PARTS>::of_part) = low;
    }
  }
}

} // namespace wl
