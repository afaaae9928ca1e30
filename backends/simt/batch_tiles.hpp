// Direct solves of small, nearly dense systems without kept factors, by products of tiles: a wave
// has a whole system in its registers, cut into tiles of 8 x 8 elements.
//
// The matrix is inverted in four columns at a time, a panel, by Gauss and Jordan with pivots: rows
// that were pivots are eliminated too, so that the right-hand side, which is one more column, ends
// as the solution. Row i takes the multiples of the four rows of pivots that are the columns of
// the panel: all tiles are updated by products of 8 x 4 and 4 x 8 tiles. An element in memory of
// the block serves eight multiplications; in batch_elimination.hpp it serves two, and the loads of
// rows of pivots take most of the time.
//
// The rows of the matrix stay in memory of the block, and the residual is taken from them. A
// solution counts only if its residual is as small as that of a stable method, as there.
#pragma once
#include "simt/batch_elimination.hpp"

namespace wl {

// c += a b, of 8 x 4 and 4 x 8 elements. Lane l has a(l / 4, l % 4), b(l % 4, l / 4), and the
// elements of row l / 4 in columns 2 (l % 4) and 2 (l % 4) + 1 of c.
WL_DEVICE void multiply_tiles(const item& it, double (&c)[2], double a, double b) {
#if defined(WL_CUDA) && __CUDA_ARCH__ >= 800
  (void)it;
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a), "d"(b));
#else
  const int lane = lane_of(it), row = lane / 4, column = 2 * (lane % 4);
  for (int k = 0; k < 4; ++k) {
    const double of_row = shuffle(a, 4 * row + k);
    const double left = shuffle(b, 4 * column + k), right = shuffle(b, 4 * (column + 1) + k);
    c[0] += of_row * left;
    c[1] += of_row * right;
  }
#endif
}

// The same for two tiles, one below the other.
WL_DEVICE void multiply_tiles(const item& it, double (&c)[2], double (&below)[2], double a,
                              double a_below, double b) {
#if defined(WL_CUDA) && __CUDA_ARCH__ >= 900
  (void)it;
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(below[0]), "+d"(below[1])
      : "d"(a), "d"(a_below), "d"(b));
#else
  multiply_tiles(it, c, a, b);
  multiply_tiles(it, below, a_below, b);
#endif
}

// The memory of a block and the registers of a lane for a system of N rows.
template <int N>
struct tiled_system {
  static constexpr int edge = 8, depth = 4;                   // of tiles and of panels
  static constexpr int down = (N + edge - 1) / edge;          // tiles, with the right-hand side
  static constexpr int across = (N + edge) / edge;            // in column N
  static constexpr int of_lane = (N + WL_WARP - 1) / WL_WARP; // rows of a lane in a panel
  static constexpr int distance = ((N + 1) / 2 | 1) * 2;      // of rows in memory
  static constexpr int of_pivot = across * edge + depth;      // the same of pivots
  using two = pack<double, 2>;

  double* tile;   // the matrix, N x distance
  double* panel;  // 8 down x 4
  double* pivots; // the rows of four pivots, 4 x of_pivot
  i32* steps;     // the column of which a row is the pivot

  double c[down][across][2];

  // Takes the matrix from memory of the block. Elements beyond it are zero.
  WL_DEVICE void take(const item& it, const double* b) {
    const int lane = lane_of(it), in_tile = lane / 4, left = 2 * (lane % 4);
#pragma unroll
    for (int i = 0; i < down; ++i) {
      const int row = i * edge + in_tile;
      const bool there = row < N;
      const double* const of_row = tile + (there ? row : 0) * distance;
#pragma unroll
      for (int j = 0; j < across; ++j) {
        const int column = j * edge + left;
        two found{{0.0, 0.0}};
        if (there && column < N)
          found = *reinterpret_cast<const two*>(of_row + column);
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          c[i][j][u] = column + u < N ? found.at[u] : 0.0;
          if (there && column + u == N)
            c[i][j][u] = b[row];
        }
      }
    }
  }

  // Stores the panel of columns 4 q to 4 q + 3, of which J is the tile.
  template <int J = 0>
  WL_DEVICE void store_panel(const item& it, int q) const {
    if (q / 2 == J) {
      const int lane = lane_of(it);
      if (lane % 4 / 2 == q % 2) {
#pragma unroll
        for (int i = 0; i < down; ++i)
          *reinterpret_cast<two*>(panel + (i * edge + lane / 4) * depth + lane % 2 * 2) =
              two{{c[i][J][0], c[i][J][1]}};
      }
    } else if constexpr (J + 1 < across) {
      store_panel<J + 1>(it, q);
    }
  }

  // Turns the panel into the multiples of the rows of pivots, of which it returns the numbers in
  // `p`; false if a pivot is zero or not finite. Bit m of `open` says whether row m of the lane may
  // be a pivot.
  WL_DEVICE bool invert_panel(const item& it, int q, u32& open, int (&p)[depth]) const {
    double a[of_lane][depth];
    const int lane = lane_of(it);
#pragma unroll
    for (int m = 0; m < of_lane; ++m) {
      const int row = lane + m * WL_WARP;
#pragma unroll
      for (int u = 0; u < depth; u += 2) {
        const two found =
            row < down * edge ? *reinterpret_cast<two*>(panel + row * depth + u) : two{{0.0, 0.0}};
        a[m][u] = found.at[0];
        a[m][u + 1] = found.at[1];
      }
    }
#pragma unroll
    for (int k = 0; k < depth; ++k) {
      p[k] = -1;
      if (N % depth != 0 && q * depth + k >= N) { // columns beyond the matrix
#pragma unroll
        for (int m = 0; m < of_lane; ++m)
          a[m][k] = 0.0;
        continue;
      }
      // The largest absolute value, to 14 bits, with the row; only rows that were no pivots count.
      u32 key = 0u;
#pragma unroll
      for (int m = 0; m < of_lane; ++m) {
        const u32 of_row = ((pivot_key(a[m][k]) - 1u) & ~63u) | u32(63 - lane - m * WL_WARP);
        const u32 counted = (open >> m & 1u) != 0u ? of_row : 0u;
        key = counted > key ? counted : key;
      }
      const int row = 63 - int(largest_of_wave(it, key) & 63u);
      p[k] = row;
      const int from = row % WL_WARP;
      double of_pivot[depth];
#pragma unroll
      for (int u = 0; u < depth; ++u) {
        // Read before one is chosen: CUDA's compiler chooses between addresses else, in local
        // memory.
        const double low = a[0][u], high = a[of_lane - 1][u];
        of_pivot[u] = shuffle(row < WL_WARP ? low : high, from);
      }
      const double value = of_pivot[k], size = pivot_size(value);
      if (!(size > 0.0) || !finite(size))
        return false;
      const double inverse = 1.0 / value;
#pragma unroll
      for (int m = 0; m < of_lane; ++m) {
        const bool is_pivot = lane + m * WL_WARP == row;
        const double of_row = a[m][k];
        if (is_pivot) {
          open &= ~(1u << m);
          steps[row] = q * depth + k;
        }
#pragma unroll
        for (int u = 0; u < depth; ++u)
          if (u != k) {
            const double scaled = of_pivot[u] * inverse;
            a[m][u] = is_pivot ? scaled : a[m][u] - of_row * scaled;
          }
        a[m][k] = is_pivot ? inverse : -of_row * inverse;
      }
    }
#pragma unroll
    for (int m = 0; m < of_lane; ++m) {
      const int row = lane + m * WL_WARP;
      if (row < down * edge) {
#pragma unroll
        for (int u = 0; u < depth; u += 2)
          *reinterpret_cast<two*>(panel + row * depth + u) = two{{a[m][u], a[m][u + 1]}};
      }
    }
    return true;
  }

  // Adds the multiples of the rows of pivots to all rows, from tile J of the columns on. The rows
  // of the pivots themselves are zero before.
  template <int J = 0>
  WL_DEVICE void update(const item& it, int q, const int (&p)[depth]) {
    if (q / 2 == J) {
      const int lane = lane_of(it);
      u32 touched = 0u;
#pragma unroll
      for (int k = 0; k < depth; ++k)
        touched |= p[k] < 0 ? 0u : 1u << p[k] / edge;
#pragma unroll
      for (int i = 0; i < down; ++i)
        if ((touched >> i & 1u) != 0u) {
          const int row = i * edge + lane / 4;
          int slot = -1;
#pragma unroll
          for (int k = 0; k < depth; ++k)
            slot = row == p[k] ? k : slot;
          if (slot >= 0) {
            double* const place = pivots + slot * of_pivot + 2 * (lane % 4);
#pragma unroll
            for (int j = J; j < across; ++j) {
              *reinterpret_cast<two*>(place + j * edge) = two{{c[i][j][0], c[i][j][1]}};
              c[i][j][0] = c[i][j][1] = 0.0;
            }
          }
        }
      it.barrier();
      double a[down];
#pragma unroll
      for (int i = 0; i < down; ++i)
        a[i] = panel[(i * edge + lane / 4) * depth + lane % 4];
#pragma unroll
      for (int j = J; j < across; ++j) {
        const double b = pivots[lane % 4 * of_pivot + j * edge + lane / 4];
#pragma unroll
        for (int i = 0; i + 1 < down; i += 2)
          multiply_tiles(it, c[i][j], c[i + 1][j], a[i], a[i + 1], b);
        if constexpr (down % 2 != 0)
          multiply_tiles(it, c[down - 1][j], a[down - 1], b);
      }
      it.barrier();
    } else if constexpr (J + 1 < across) {
      update<J + 1>(it, q, p);
    }
  }

  // x = the solution; false if a pivot is zero or not finite. Ends with a barrier.
  WL_DEVICE bool solve(const item& it, double* x) {
    for (int e = it.thread(); e < depth * of_pivot; e += WL_BLOCK)
      pivots[e] = 0.0;
    u32 open = 0u;
#pragma unroll
    for (int m = 0; m < of_lane; ++m)
      open |= lane_of(it) + m * WL_WARP < N ? 1u << m : 0u;
#pragma unroll 1
    for (int q = 0; q < (N + depth - 1) / depth; ++q) {
      store_panel(it, q);
      it.barrier();
      int p[depth];
      if (!invert_panel(it, q, open, p))
        return false;
      update(it, q, p);
    }
    const int lane = lane_of(it);
    if (lane % 4 == N % edge / 2) {
#pragma unroll
      for (int i = 0; i < down; ++i) {
        const int row = i * edge + lane / 4;
        if (row < N)
          x[steps[row]] = c[i][N / edge][N % 2];
      }
    }
    it.barrier();
    return true;
  }
};

// Block k, a wave, has system k, of matrix[k] or, where `matrix` is missing, of matrix k. No entry
// is there twice.
template <int N>
WL_DEVICE void batch_tiles(const item& it, i64 count, i64 n, const i32* places, const i64* matrix,
                           i64 entries, const double* values, const double* b, double* x,
                           const double* relative, const double* absolute, i64 apart,
                           const double* limits, i64 /*refine*/, u8* codes, i64* iterations,
                           double* norms, double* thresholds, i32* undecided) {
  using system = tiled_system<N>;
  static_assert(N > 0 && N <= 2 * WL_WARP && WL_BLOCK == WL_WARP && WL_WARP == 32,
                "a wave has all tiles");
  using rows = eliminated_rows<N, system::of_lane, double>;
  static_assert(rows::stride == system::distance, "both have the rows in one place");
  WL_SHARED(typename rows::packed, memory, N * rows::stride / rows::each);
  WL_SHARED(typename rows::packed, panel, system::down * system::edge * system::depth / 2);
  WL_SHARED(typename rows::packed, pivots, system::depth * system::of_pivot / 2);
  WL_SHARED(typename rows::packed, found, (N + 1) / 2);
  WL_SHARED(i32, steps, N);
  const i64 k = it.block();
  if (k >= count || n != N)
    return;
  const rows own{reinterpret_cast<double*>(memory), nullptr, nullptr};
  own.load(it, places, entries, values + (matrix ? matrix[k] : k) * entries);
  system whole;
  whole.tile = own.tile;
  whole.panel = reinterpret_cast<double*>(panel);
  whole.pivots = reinterpret_cast<double*>(pivots);
  whole.steps = steps;
  whole.take(it, b + k * N);
  double* const solution = reinterpret_cast<double*>(found);
  const verdicts_of_systems verdicts{codes, iterations, norms, thresholds, undecided};
  if (whole.solve(it, solution))
    judge_rows(it, own, k, b, solution, x, relative, absolute, apart, limits, verdicts);
  else if (it.thread() == 0)
    verdicts.leave(k);
}

} // namespace wl
