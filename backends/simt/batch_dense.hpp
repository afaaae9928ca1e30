// Direct solves of small, nearly dense systems: work-item i of a block holds row i in registers.
//
// A step chooses a pivot row. The work-item that holds this row writes it to shared memory, and all
// other work-items subtract a multiple of it from their rows. Rows are not exchanged; a work-item
// stores the step in which its row was the pivot. A step also moves the elements of a row down by
// one register, so that the pivot column is always the first. Several steps therefore share one
// piece of code, and the code fits into the instruction cache.
#pragma once
#include "simt/batch_judge.hpp"
#include "simt/bits.hpp"

namespace wl {

// An integer that orders absolute values; the order is exact to 20 bits in double precision. The
// key of a number is never 0. NaN has the largest key.
WL_DEVICE u32 pivot_key(float v) { return (__builtin_bit_cast(u32, v) & 0x7fffffffu) + 1u; }
WL_DEVICE u32 pivot_key(double v) {
  return (u32(__builtin_bit_cast(u64, v) >> 32) & 0x7fffffffu) + 1u;
}

// The largest number of a wave, returned to all lanes.
WL_DEVICE u32 largest_of_wave(const item& it, u32 key) {
#if defined(WL_CUDA) && __CUDA_ARCH__ >= 800
  (void)it;
  return __reduce_max_sync(0xffffffffu, key);
#else
  for (int d = WL_WARP / 2; d > 0; d /= 2) {
    const u32 other = shuffle_xor(it, key, d);
    key = other > key ? other : key;
  }
  return key;
#endif
}

// The work-item with the largest key, from the keys and work-items that all waves stored.
template <int waves>
WL_DEVICE int best_of_waves(const u32* keys) {
  int wave = 0;
#pragma unroll
  for (int w = 1; w < waves; ++w)
    wave = keys[2 * w] > keys[2 * wave] ? w : wave;
  return int(keys[2 * wave + 1]);
}

// The factors of a matrix: multipliers and U in the tile. Row i of the tile holds row i of the
// matrix.
template <int N, class T>
struct factors_in_tile {
  static constexpr int waves = WL_BLOCK / WL_WARP, together = 8;
  // Steps that share their code write up to `together` - 1 elements beyond a row.
  static constexpr int stride = (N + together - 1) | 1;
  static constexpr int each = (N + WL_WARP - 1) / WL_WARP; // rows of a lane in a solve

  T* tile;
  T* inverse; // of the pivots
  i32* owner; // the row that is the pivot of a step
  i32* steps; // the step of which a row is the pivot

  // Factorizes the rows in the tile; false if a pivot is zero or not finite.
  WL_DEVICE bool factorize(const item& it, u32* keys) const {
    const int row = it.thread() < N ? it.thread() : 0;
    T a[N];
#pragma unroll
    for (int j = 0; j < N; ++j)
      a[j] = tile[row * stride + j];
    bool waits = it.thread() < N;
    it.barrier();
    const bool fits = eliminate<N>(it, a, waits, keys);
    it.barrier();
    return fits;
  }

  // The steps in which a row has W elements left, and all later steps.
  template <int W>
  WL_DEVICE bool eliminate(const item& it, T (&a)[N], bool& waits, u32* keys) const {
    using R = real_t<T>;
    constexpr int count = W < together ? W : together;
#pragma unroll 1
    for (int k = N - W; k < N - W + count; ++k) {
      const int side = k % 2 * waves;
      const u32 key = waits ? pivot_key(pivot_size(a[0])) : 0u;
      const u32 most = largest_of_wave(it, key);
      const bool best = lane_of(it) == first_one_in(ballot(key == most));
      T* const mine = tile + it.thread() * stride + k;
      if (best && waits) {
        keys[2 * (side + wave_of(it))] = most;
        keys[2 * (side + wave_of(it)) + 1] = u32(it.thread());
#pragma unroll
        for (int j = 0; j < W; ++j)
          mine[j] = a[j];
      } else if (best) {
        keys[2 * (side + wave_of(it))] = 0u;
      }
      it.barrier();
      const int p = best_of_waves<waves>(keys + 2 * side);
      const T* const row = tile + p * stride + k;
      const T value = row[0];
      const R size = pivot_size(value);
      if (!(size > R(0)) || !finite(size))
        return false;
      if (it.thread() == p) {
        waits = false;
        inverse[k] = T(1) / value;
        owner[k] = p;
        steps[p] = k;
      } else if (waits) {
        const T factor = a[0] / value;
        mine[0] = factor;
#pragma unroll
        for (int j = 0; j + 1 < W; ++j)
          a[j] = a[j + 1] - factor * row[j + 1];
      }
    }
    if constexpr (W > together)
      return eliminate<W - together>(it, a, waits, keys);
    return true;
  }

  // d = the solution for the right-hand side r, computed by the first wave.
  WL_DEVICE void apply(const item& it, const T* r, T* d, T*) const {
    if (wave_of(it) == 0) {
      T v[each];
      i32 step[each];
#pragma unroll
      for (int m = 0; m < each; ++m) {
        const int row = lane_of(it) + m * WL_WARP;
        v[m] = row < N ? r[row] : T(0);
        step[m] = row < N ? steps[row] : -1;
      }
#pragma unroll 4
      for (int k = 0; k < N; ++k) {
        const T value = of_row(v, owner[k]);
#pragma unroll
        for (int m = 0; m < each; ++m)
          if (step[m] > k)
            v[m] -= tile[(lane_of(it) + m * WL_WARP) * stride + k] * value;
      }
#pragma unroll 4
      for (int k = N - 1; k >= 0; --k) {
        const T value = of_row(v, owner[k]) * inverse[k];
        if (lane_of(it) == 0)
          d[k] = value;
#pragma unroll
        for (int m = 0; m < each; ++m)
          if (step[m] >= 0 && step[m] < k)
            v[m] -= tile[(lane_of(it) + m * WL_WARP) * stride + k] * value;
      }
    }
    it.barrier();
  }

  // The element of a row, read from the lane that holds it.
  WL_DEVICE static T of_row(const T (&v)[each], int row) {
    T chosen = v[0];
#pragma unroll
    for (int m = 1; m < each; ++m)
      chosen = row / WL_WARP == m ? v[m] : chosen;
    return shuffle(chosen, row % WL_WARP);
  }
};

// `repeated`: two entries of the matrix may share one element.
template <int N, int L, class T, class I>
WL_DEVICE void batch_dense(const item& it, i64 first, const i64* places, i64 repeated,
                           const i64* starts, i64 width, i64 entries, const I* indptr,
                           const I* indices, const T* values, const T* b, T* x, i64 started,
                           const double* relative, const double* absolute, i64 apart,
                           const double* limits, i64 refine, u8* codes, i64* iterations,
                           double* norms, double* thresholds, i32* undecided, i64 determines,
                           u8* states, T* signs, double* logarithms) {
  using factors = factors_in_tile<N, T>;
  constexpr int stride = factors::stride;
  struct alignas(16) pair {
    u8 bytes[16];
  };
  WL_SHARED(pair, memory, ((N * stride + 5 * N) * int(sizeof(T)) + 15) / 16);
  WL_SHARED(u32, keys, 4 * factors::waves);
  WL_SHARED(i32, owner, N);
  WL_SHARED(i32, steps, N);
  T* const tile = reinterpret_cast<T*>(memory);
  T* const v = tile + N * stride;
  const i64 m = first + it.block();
  if (starts && starts[m] == starts[m + 1] && !determines)
    return;
  for (int e = it.thread(); e < N * stride; e += WL_BLOCK)
    tile[e] = T(0);
  it.barrier();
  const T* const own_values = values + m * entries;
  if (repeated == 0)
    for (i64 e = it.thread(); e < entries; e += WL_BLOCK)
      tile[places[e]] = own_values[e];
  else if (it.thread() == 0)
    for (i64 e = 0; e < entries; ++e)
      tile[places[e]] += own_values[e];
  it.barrier();
  const factors own{tile, v + 4 * N, owner, steps};
  const bool has_factors = own.factorize(it, keys);
  const verdicts_of_systems verdicts{codes, iterations, norms, thresholds, undecided};
  const factored_systems<T, I> s{N, entries, starts,   width,    indptr, indices, values, b,
                                 x, started, relative, absolute, apart,  limits,  refine, verdicts};
  finish_matrix<L>(it, s, determinants<T>{determines, states, signs, logarithms}, m, has_factors,
                   steps, own, v, [&](i64 k) { return tile[owner[k] * stride + int(k)]; });
}

} // namespace wl
