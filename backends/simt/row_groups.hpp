// Rows of very different lengths, each processed by a group of work-items: by a wave, or a long row
// by a whole block.
#pragma once
#include "simt/narrow.hpp"

namespace wl {

// Takes the larger one; NaN is larger than all.
template <class S>
struct larger {
  WL_DEVICE S operator()(S a, S b) const { return a > b || a != a ? a : b; }
};
template <class S>
struct adding {
  WL_DEVICE S operator()(S a, S b) const { return a + b; }
};

// The lanes of a wave.
struct wave_of_row {
  const item& it;
  static constexpr int size = WL_WARP, waves = 1;
  WL_DEVICE int rank() const { return lane_of(it); }
  WL_DEVICE int wave() const { return 0; }

  // The reduction of the values of all lanes, in every lane.
  template <int N, class S, class Op>
  WL_DEVICE void reduce(S (&values)[N], Op op, int from = 1) const {
    for (int d = from; d < WL_WARP; d *= 2)
#pragma unroll
      for (int n = 0; n < N; ++n)
        values[n] = op(values[n], shuffle_xor(it, values[n], d));
  }
};

// The work-items of a block as a group. A reduction combines the lanes with equal numbers modulo
// `from`.
struct block_of_row {
  const item& it;
  static constexpr int size = WL_BLOCK, waves = WL_BLOCK / WL_WARP;
  WL_DEVICE int rank() const { return it.thread(); }
  WL_DEVICE int wave() const { return wave_of(it); }

  template <int N, class S, class Op>
  WL_DEVICE void reduce(S (&values)[N], Op op, int from = 1) const {
    wave_of_row{it}.reduce(values, op, from);
    WL_SHARED(S, of_wave, waves * N * WL_WARP);
    it.barrier(); // all work-items have read the previous values
#pragma unroll
    for (int n = 0; n < N; ++n)
      of_wave[(wave() * N + n) * WL_WARP + lane_of(it)] = values[n];
    it.barrier();
#pragma unroll
    for (int n = 0; n < N; ++n) {
      values[n] = of_wave[n * WL_WARP + lane_of(it)];
      for (int w = 1; w < waves; ++w)
        values[n] = op(values[n], of_wave[(w * N + n) * WL_WARP + lane_of(it)]);
    }
  }
};

// The row of a wave of this block: adjacent rows go to different blocks, and the waves of a block
// have distant rows. Long rows are often adjacent, or their numbers differ by powers of two.
WL_DEVICE i64 unit_of_wave(const item& it, i64 first, int wave) {
  constexpr int apart = 12345;
  return first + wave * it.blocks() + (it.block() + i64(wave) * apart) % it.blocks();
}

// Calls body(group, row, part, begin, end) for each row and each of its `parts` parts, such as
// blocks of a batch. A whole block processes a row of more than LONG entries, because one wave
// would take too long.
template <int LONG, class I, class Body>
WL_DEVICE void for_each_row(const item& it, i64 m, i64 parts, const I* indptr, const Body& body) {
  constexpr int waves = WL_BLOCK / WL_WARP;
  WL_SHARED(i32, is_long, waves);
  const i64 units = m * parts;
  for (i64 first = 0; first < units; first += it.blocks() * waves) {
    const i64 u = unit_of_wave(it, first, wave_of(it));
    bool waits = false;
    if (u < units) {
      const i64 row = u % m, begin = indptr[row], end = indptr[row + 1];
      waits = end - begin > LONG;
      if (!waits)
        body(wave_of_row{it}, row, u / m, begin, end);
    }
    if (lane_of(it) == 0)
      is_long[wave_of(it)] = waits;
    it.barrier();
    for (int w = 0; w < waves; ++w)
      if (is_long[w]) {
        const i64 other = unit_of_wave(it, first, w), row = other % m;
        body(block_of_row{it}, row, other / m, i64(indptr[row]), i64(indptr[row + 1]));
      }
    it.barrier(); // all lanes have read the values that the next iteration overwrites
  }
}

} // namespace wl
