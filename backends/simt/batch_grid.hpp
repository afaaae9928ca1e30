// Direct solves of dense systems that are too large for a work-item to hold a row: the registers of
// a block hold the elements of the inverse, distributed over rows and columns.
//
// A wave holds rows wave, wave + waves, ...; a lane of it holds columns lane, lane + WL_WARP, ... A
// step of the Gauss-Jordan method eliminates one column. Each wave proposes its largest element
// among rows that were no pivots yet, the wave that holds the pivot row stores this row, and all
// work-items subtract multiples of it. Earlier pivot rows are eliminated too, so that the inverse
// overwrites the matrix. Rows are not exchanged. The solutions are refined and judged as the
// solutions of factors are.
#pragma once
#include "simt/batch_dense.hpp"
#include "simt/batch_tile_inverse.hpp"
#include "simt/launch_memory.hpp"
#include "simt/tile_entries.hpp"

namespace wl {

// The largest number of rows of a matrix, one less than a power of 2.
constexpr int MOST_ROWS = 255;
// The largest number of rows of a wave: the low bits of a pivot key hold the number of the row.
constexpr int MOST_ROWS_OF_WAVE = (1 << 5) - 1;

// The inverse of a matrix of N rows, and the shared memory for its steps.
template <int N, class T>
struct inverse_of_block {
  static constexpr int waves = WL_BLOCK / WL_WARP;
  static constexpr int down = (N + waves - 1) / waves, across = (N + WL_WARP - 1) / WL_WARP;
  // Elements of shared memory: the pivot column, the pivot row, all pivots, and the reciprocal of
  // one pivot.
  static constexpr int of_column = down * waves, of_row = across * WL_WARP;
  static constexpr int elements = of_column + of_row + N + 1;
  static constexpr int words = waves; // 32-bit integers of shared memory

  T* column;
  T* row;
  T* pivot;
  T* reciprocal;
  u32* keys;  // one key of each wave
  i32* owner; // the row that is the pivot of a step
  i32* steps; // the step of which a row is the pivot
  T a[down][across];

  WL_DEVICE inverse_of_block(T* memory, u32* of_waves, i32* of_steps)
      : column(memory), row(column + of_column), pivot(row + of_row), reciprocal(pivot + N),
        keys(of_waves), owner(of_steps), steps(of_steps + N) {}

  // Inverts the matrix in the tile, N x N; false if a pivot is zero or not finite.
  WL_DEVICE bool invert(const item& it, const T* tile) {
    u32 open = 0u;
#pragma unroll
    for (int i = 0; i < down; ++i) {
      const int of = wave_of(it) + i * waves;
      open |= of < N ? 1u << i : 0u;
#pragma unroll
      for (int j = 0; j < across; ++j) {
        const int at = lane_of(it) + j * WL_WARP;
        a[i][j] = of < N && at < N ? tile[of * N + at] : T(0);
      }
    }
    const bool fits = take_columns<0>(it, open);
    it.barrier();
    return fits;
  }

  // The steps of the columns that are element J of the lanes, and of all later columns. Bit i of
  // `open` says whether row i of the wave may still be a pivot.
  template <int J>
  WL_DEVICE bool take_columns(const item& it, u32& open) {
    using R = real_t<T>;
    constexpr int begin = J * WL_WARP, count = N - begin < WL_WARP ? N - begin : WL_WARP;
    const int lane = lane_of(it), wave = wave_of(it);
#pragma unroll 1
    for (int from = 0; from < count; ++from) {
      wave_barrier(); // all lanes have read the previous column
      store_column<J>(it, open, lane == from);
      it.barrier();
      const u32 most = largest_of_wave(it, lane < waves ? keys[lane] : 0u);
      const int p = MOST_ROWS - int(most & u32(MOST_ROWS));
      if (wave == p % waves) {
        store_row<J>(it, p, lane == from);
        open &= ~(1u << p / waves);
        if (lane == 0) {
          pivot[begin + from] = column[p];
          *reciprocal = T(1) / column[p];
          owner[begin + from] = p;
          steps[p] = begin + from;
          column[p] = T(-1); // the subtraction then leaves the scaled pivot row in row p
        }
      }
      it.barrier();
      const R size = pivot_size(pivot[begin + from]);
      if (!(size > R(0)) || !finite(size))
        return false;
      subtract(it);
    }
    if constexpr (J + 1 < across)
      return take_columns<J + 1>(it, open);
    return true;
  }

  // The lane that owns a column stores its elements, clears them, and proposes a pivot for its
  // wave. The key holds the absolute value, to 12 bits in double precision, and the row.
  template <int J>
  WL_DEVICE void store_column(const item& it, u32 open, bool owns) {
    u32 key = 0u;
#pragma unroll
    for (int i = 0; i < down; ++i) {
      const u32 of_row =
          (size_bits(a[i][J]) & ~u32(MOST_ROWS_OF_WAVE)) | u32(MOST_ROWS_OF_WAVE - i);
      const u32 counted = (open >> i & 1u) != 0u ? of_row : 0u;
      key = counted > key ? counted : key;
    }
    if (!owns)
      return;
#pragma unroll
    for (int i = 0; i < down; ++i) {
      column[wave_of(it) + i * waves] = a[i][J];
      a[i][J] = T(0);
    }
    const int row_of_best =
        wave_of(it) + (MOST_ROWS_OF_WAVE - int(key & u32(MOST_ROWS_OF_WAVE))) * waves;
    keys[wave_of(it)] = key == 0u ? 0u : (key & ~u32(MOST_ROWS)) | u32(MOST_ROWS - row_of_best);
  }

  // Bits that order absolute values; NaN is the largest.
  template <class R>
  WL_DEVICE static u32 size_bits(R v) {
    return pivot_key(v) - 1u;
  }
  template <class R>
  WL_DEVICE static u32 size_bits(complex<R> v) {
    return size_bits(pivot_size(v));
  }

  // The wave that holds row p stores the row and clears it; the element of the pivot column is set
  // to 1.
  template <int J>
  WL_DEVICE void store_row(const item& it, int p, bool owns) {
    // A bit mask: if i were compared with a row number, the compiler would address the array, which
    // would then be in local memory.
    const u32 chosen = 1u << p / waves;
#pragma unroll
    for (int i = 0; i < down; ++i)
      if ((chosen >> i & 1u) != 0u) {
#pragma unroll
        for (int j = 0; j < across; ++j) {
          row[lane_of(it) + j * WL_WARP] = j == J && owns ? T(1) : a[i][j];
          a[i][j] = T(0);
        }
      }
  }

  WL_DEVICE void subtract(const item& it) {
    const T scale = *reciprocal;
    T of_pivot[across];
#pragma unroll
    for (int j = 0; j < across; ++j)
      of_pivot[j] = row[lane_of(it) + j * WL_WARP];
#pragma unroll
    for (int i = 0; i < down; ++i) {
      const T factor = column[wave_of(it) + i * waves] * scale;
#pragma unroll
      for (int j = 0; j < across; ++j)
        a[i][j] -= factor * of_pivot[j];
    }
  }

  // d = the solution for r. Ends with a barrier.
  WL_DEVICE void apply(const item& it, const T* r, T* d, T*) const {
    T side[across];
#pragma unroll
    for (int j = 0; j < across; ++j) {
      const int at = lane_of(it) + j * WL_WARP;
      side[j] = at < N ? r[owner[at]] : T(0);
    }
#pragma unroll
    for (int i = 0; i < down; ++i) {
      T sum = T(0);
#pragma unroll
      for (int j = 0; j < across; ++j)
        sum += a[i][j] * side[j];
      sum = sum_of_lanes<WL_WARP>(it, sum);
      const int of = wave_of(it) + i * waves;
      if (lane_of(it) == 0 && of < N)
        d[steps[of]] = sum;
    }
    it.barrier();
  }
};

// The inverse that a kernel uses. PARTS > 0 selects the tiles of batch_tile_inverse.hpp and is the
// number of waves that share a row of tiles; PARTS = 0 selects inverse_of_block.
template <int N, int PARTS, class T>
struct chosen_inverse {
  using type = tiled_inverse<N, PARTS>;
  static_assert(same<T, double>::value, "tiles are of double precision");
};
template <int N, class T>
struct chosen_inverse<N, 0, T> {
  using type = inverse_of_block<N, T>;
  static_assert(type::waves <= WL_WARP && type::down <= MOST_ROWS_OF_WAVE && N < MOST_ROWS,
                "a wave has a bit of each of its rows, and the keys of all waves");
};

// `repeated`: two entries of the matrix may share one element. Where OWN is 1 the launch allocates
// shared memory for a block: the matrix, four vectors, and the arrays of the steps. For PARTS see
// chosen_inverse.
template <int N, int OWN, int PARTS, int B, int L, class T, class I>
WL_DEVICE void batch_grid(const item& it, i64 first, const i64* places, i64 repeated,
                          const i64* starts, i64 width, i64 entries, const I* indptr,
                          const I* indices, const T* values, const T* b, T* x, i64 started,
                          const double* relative, const double* absolute, i64 apart,
                          const double* limits, i64 refine, u8* codes, i64* iterations,
                          double* norms, double* thresholds, i32* undecided, i64 determines,
                          u8* states, T* signs, double* logarithms) {
  using inverse = typename chosen_inverse<N, PARTS, T>::type;
  // elements before the arrays of the steps, which hold pairs of elements
  constexpr int before = N * N + 4 * N + N % 2;
  struct alignas(16) pair {
    u8 bytes[16];
  };
  static_assert(B == WL_BLOCK, "the kernel is named by the size of its blocks");
  WL_SHARED(pair, memory, OWN ? 1 : ((before + inverse::elements) * int(sizeof(T)) + 15) / 16);
  WL_SHARED(u32, keys, inverse::words);
  WL_SHARED(i32, of_steps, 2 * N);
  T* const tile = reinterpret_cast<T*>(OWN ? launch_memory() : memory[0].bytes);
  T* const v = tile + N * N;
  const i64 m = first + it.block();
  if (starts && starts[m] == starts[m + 1] && !determines)
    return;
  for (int e = it.thread(); e < N * N; e += WL_BLOCK)
    tile[e] = T(0);
  it.barrier();
  const T* const own_values = values + m * entries;
  if (repeated == 0)
    scatter_entries<8>(it, places, entries, own_values, tile);
  else if (it.thread() == 0)
    for (i64 e = 0; e < entries; ++e)
      tile[places[e]] += own_values[e];
  it.barrier();
  inverse own(tile + before, keys, of_steps);
  const bool has_inverse = own.invert(it, tile);
  const verdicts_of_systems verdicts{codes, iterations, norms, thresholds, undecided};
  const factored_systems<T, I> s{N, entries, starts,   width,    indptr, indices, values, b,
                                 x, started, relative, absolute, apart,  limits,  refine, verdicts};
  finish_matrix<L>(it, s, determinants<T>{determines, states, signs, logarithms}, m, has_inverse,
                   own.steps, own, v, [&](i64 k) { return own.pivot[k]; });
}

} // namespace wl
