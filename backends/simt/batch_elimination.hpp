// Direct solves of small, nearly dense systems without stored factors: a work-item holds one or two
// rows of the matrix and of the right-hand side in registers. With two rows, an element of the
// pivot row is loaded once for both rows, and the work-items of one wave hold all rows.
//
// The steps are the steps of batch_dense.hpp; the right-hand side is eliminated together with the
// matrix. A solution is accepted only if its residual is as small as that of a stable method. All
// other systems stay undecided; they are solved by a factorization with refinement.
#pragma once
#include "simt/batch_dense.hpp"
#include "simt/packs.hpp"
#include "simt/tile_entries.hpp"

namespace wl {

// Elements that a work-item loads before it stores the first of them.
constexpr int LOADED_TOGETHER = 40;

// The rows of a matrix in shared memory, N x stride. Rows begin at multiples of 16 bytes. If 8
// lanes load 16 bytes each from their rows, they access each bank once. A work-item holds row
// `thread` and, where P is 2, row `thread + WL_BLOCK`.
template <int N, int P, class T>
struct eliminated_rows {
  static constexpr int each = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1; // elements of a pack
  static constexpr int waves = WL_BLOCK / WL_WARP, together = 8;
  static constexpr int stride = ((N + each - 1) / each | 1) * each;
  static constexpr int of_lane = (N + WL_WARP - 1) / WL_WARP; // rows of a lane in a solve
  using packed = pack<T, each>;

  T* tile;
  T* side;    // the right-hand sides of pivots, by row
  i32* owner; // the row that is the pivot of a step

  // Stores the entries of a matrix, and zeros between them.
  WL_DEVICE void load(const item& it, const i32* places, i64 entries, const T* values) const {
    packed zeros;
#pragma unroll
    for (int u = 0; u < each; ++u)
      zeros.at[u] = T(0);
    for (int e = it.thread(); e < N * stride / each; e += WL_BLOCK)
      reinterpret_cast<packed*>(tile)[e] = zeros;
    it.barrier();
    scatter_entries<LOADED_TOGETHER>(it, places, entries, values, tile);
    it.barrier();
  }

  // Eliminates the columns of the rows in the tile; false if a pivot is zero or not finite.
  WL_DEVICE bool eliminate(const item& it, T (&f)[P], u32* keys) const {
    T a[P][(N + each - 1) / each * each];
    bool waits[P];
#pragma unroll
    for (int m = 0; m < P; ++m) {
      const int own = it.thread() + m * WL_BLOCK, row = own < N ? own : 0;
      waits[m] = own < N;
#pragma unroll
      for (int j = 0; j < N; j += each) {
        const packed loaded = *reinterpret_cast<const packed*>(tile + row * stride + j);
#pragma unroll
        for (int u = 0; u < each; ++u)
          a[m][j + u] = loaded.at[u];
      }
    }
    it.barrier();
    const bool fits = steps<N>(it, a, f, waits, keys);
    it.barrier();
    return fits;
  }

  // The steps in which a row has W elements left, and all later steps. The pivot row is stored from
  // its diagonal element on.
  template <int W, int A>
  WL_DEVICE bool steps(const item& it, T (&a)[P][A], T (&f)[P], bool (&waits)[P], u32* keys) const {
    using R = real_t<T>;
    constexpr int count = W < together ? W : together;
#pragma unroll 1
    for (int k = N - W; k < N - W + count; ++k) {
      const int half = k % 2 * waves;
      u32 key = 0u;
      int chosen = 0;
#pragma unroll
      for (int m = 0; m < P; ++m) {
        const u32 of_row = waits[m] ? pivot_key(pivot_size(a[m][0])) : 0u;
        chosen = of_row > key ? m : chosen;
        key = of_row > key ? of_row : key;
      }
      const u32 most = largest_of_wave(it, key);
      const int lane = first_one_in(ballot(key == most));
      const bool best = lane_of(it) == lane;
      int p = 0;
      T value = T(0), inverse = T(0);
      if constexpr (waves == 1) { // the pivot is known before its row is in memory
        T own = a[0][0];
#pragma unroll
        for (int m = 1; m < P; ++m)
          own = chosen == m ? a[m][0] : own;
        value = shuffle(own, lane);
        inverse = T(1) / value;
        p = lane + int(shuffle(chosen, lane)) * WL_BLOCK;
      } else if (best) {
        keys[2 * (half + wave_of(it))] = most;
        keys[2 * (half + wave_of(it)) + 1] = u32(it.thread() + chosen * WL_BLOCK);
      }
#pragma unroll
      for (int m = 0; m < P; ++m)
        if (best && key != 0u && chosen == m) {
          const int row = it.thread() + m * WL_BLOCK;
          side[row] = f[m];
#pragma unroll
          for (int j = 0; j < W; j += each) {
            packed stored;
#pragma unroll
            for (int u = 0; u < each; ++u)
              stored.at[u] = a[m][j + u];
            *reinterpret_cast<packed*>(tile + row * stride + j) = stored;
          }
        }
      it.barrier();
      if constexpr (waves > 1) {
        p = best_of_waves<waves>(keys + 2 * half);
        value = tile[p * stride];
        inverse = T(1) / value;
      }
      const T* const row = tile + p * stride;
      const R size = pivot_size(value);
      if (!(size > R(0)) || !finite(size))
        return false;
      T factor[P];
      bool any = false;
#pragma unroll
      for (int m = 0; m < P; ++m) {
        if (it.thread() + m * WL_BLOCK == p) {
          waits[m] = false;
          owner[k] = p;
        }
        factor[m] = waits[m] ? a[m][0] * inverse : T(0);
        f[m] = waits[m] ? f[m] - factor[m] * side[p] : f[m];
        any = any || waits[m];
      }
      if (any) { // rows of earlier pivots hold values without a meaning
#pragma unroll
        for (int j = 0; j < W; j += each) {
          const packed of_pivot = *reinterpret_cast<const packed*>(row + j);
#pragma unroll
          for (int u = 0; u < each; ++u)
#pragma unroll
            for (int m = 0; m < P; ++m)
              if (j + u > 0 && j + u < W)
                a[m][j + u - 1] = a[m][j + u] - factor[m] * of_pivot.at[u];
        }
      }
    }
    if constexpr (W > together)
      return steps<W - together>(it, a, f, waits, keys);
    return true;
  }

  // x = the solution, computed by the first wave. A lane holds the sums of steps lane, lane +
  // WL_WARP, ...
  WL_DEVICE void substitute(const item& it, T* x) const {
    if (wave_of(it) == 0) {
      T v[of_lane], inverse[of_lane], solution[of_lane];
      const T* row[of_lane];
#pragma unroll
      for (int m = 0; m < of_lane; ++m) {
        const int s = lane_of(it) + m * WL_WARP, p = owner[s < N ? s : 0];
        row[m] = tile + p * stride;
        v[m] = side[p];
        inverse[m] = T(1) / row[m][0];
      }
#pragma unroll
      for (int k = N - 1; k >= 0; --k) {
        const int of = k / WL_WARP;
        const T value = shuffle(v[of] * inverse[of], k % WL_WARP);
        if (lane_of(it) == k % WL_WARP)
          solution[of] = value;
#pragma unroll
        for (int m = 0; m < of_lane; ++m) {
          const int s = lane_of(it) + m * WL_WARP;
          if (s < k)
            v[m] -= row[m][k - s] * value;
        }
      }
#pragma unroll
      for (int m = 0; m < of_lane; ++m)
        if (lane_of(it) + m * WL_WARP < N)
          x[lane_of(it) + m * WL_WARP] = solution[m];
    }
    it.barrier();
  }

  // Adds the square of the residual of a row, and the squares of its terms.
  WL_DEVICE void add_residual(int of_row, const T* x, T f, double& residual, double& terms) const {
    using D = doubled<T>;
    if (of_row >= N)
      return;
    typename D::type sum = D::up(f);
    terms += square(sum);
    const T* const row = tile + of_row * stride;
#pragma unroll 6
    for (int j = 0; j < N / each * each; j += each) {
      const packed loaded = *reinterpret_cast<const packed*>(row + j);
#pragma unroll
      for (int u = 0; u < each; ++u) {
        const auto term = D::up(loaded.at[u]) * D::up(x[j + u]);
        sum = sum - term;
        terms += square(term);
      }
    }
#pragma unroll
    for (int j = N / each * each; j < N; ++j) {
      const auto term = D::up(row[j]) * D::up(x[j]);
      sum = sum - term;
      terms += square(term);
    }
    residual += square_of_norm(sum);
  }
};

// Stores the solution of system k if its residual is small enough, or leaves the system undecided.
template <int N, int P, class T>
WL_DEVICE void judge_rows(const item& it, const eliminated_rows<N, P, T>& own, i64 k, const T* b,
                          const T* found, T* x, const double* relative, const double* absolute,
                          i64 apart, const double* limits, const verdicts_of_systems& verdicts) {
  using R = real_t<T>;
  double length = 0, residual = 0, terms = 0;
#pragma unroll
  for (int m = 0; m < P; ++m) {
    const int row = it.thread() + m * WL_BLOCK;
    const T right = row < N ? b[k * N + row] : T(0);
    length += square_of_norm(doubled<T>::up(right));
    own.add_residual(row, found, right, residual, terms);
  }
  length = square_root(sum_of_block(it, length));
  residual = square_root(sum_of_block(it, residual));
  terms = square_root(sum_of_block(it, terms));
  const R first = R(length), norm = R(residual);
  const R by_length = R(relative[k * apart]) * first, at_least = R(absolute[k * apart]);
  const R threshold = by_length > at_least ? by_length : at_least;
  bool solved =
      norm <= threshold && finite(terms) && residual <= STABLE * double(epsilon<T>) * terms;
  solved = solved && (first == R(0) || (first >= R(limits[0]) && first <= R(limits[1])));
  solved = solved && (norm == R(0) || norm >= R(limits[2]));
  for (int row = it.thread(); solved && row < N; row += WL_BLOCK)
    x[k * N + row] = found[row];
  if (it.thread() == 0) {
    if (solved)
      verdicts.solved(k, 1, double(norm), double(threshold));
    else
      verdicts.leave(k);
  }
}

// Block k solves system k with matrix[k] or, if `matrix` is null, with matrix k. No matrix has two
// entries in one element.
template <int N, int P, class T>
WL_DEVICE void batch_elimination(const item& it, i64 count, i64 n, const i32* places,
                                 const i64* matrix, i64 entries, const T* values, const T* b, T* x,
                                 const double* relative, const double* absolute, i64 apart,
                                 const double* limits, i64 /*refine*/, u8* codes, i64* iterations,
                                 double* norms, double* thresholds, i32* undecided) {
  using rows = eliminated_rows<N, P, T>;
  WL_SHARED(typename rows::packed, memory, N * rows::stride / rows::each);
  WL_SHARED(T, side, N);
  WL_SHARED(T, found, N);
  WL_SHARED(u32, keys, 4 * rows::waves);
  WL_SHARED(i32, owner, N);
  const i64 k = it.block();
  if (k >= count || n != N)
    return;
  const T* const own_values = values + (matrix ? matrix[k] : k) * entries;
  const rows own{reinterpret_cast<T*>(memory), side, owner};
  const verdicts_of_systems verdicts{codes, iterations, norms, thresholds, undecided};
  T f[P];
#pragma unroll
  for (int m = 0; m < P; ++m) {
    const int row = it.thread() + m * WL_BLOCK;
    f[m] = row < N ? b[k * N + row] : T(0);
  }
  own.load(it, places, entries, own_values);
  if (!own.eliminate(it, f, keys)) {
    if (it.thread() == 0)
      verdicts.leave(k);
    return;
  }
  own.substitute(it, found);
  own.load(it, places, entries, own_values);
  judge_rows(it, own, k, b, found, x, relative, absolute, apart, limits, verdicts);
}

} // namespace wl
