// Direct solves of small, nearly dense systems without stored factors, by products of tiles: the
// registers of a wave hold a whole system, cut into tiles of 8 x 8 elements.
//
// The Gauss-Jordan method with pivots inverts the matrix in panels of four columns. Earlier pivot
// rows are eliminated too, so that the right-hand side, stored as one more column, becomes the
// solution. The panel holds the multipliers: row i gets four multiples, one of each of the four
// pivot rows. So products of 8 x 4 and 4 x 8 tiles update all tiles. An element in shared memory is
// used for eight multiplications. In batch_elimination.hpp it is used for two, and the loads of
// pivot rows take most of the time.
//
// The matrix stays in shared memory, and the residual is computed with it. As in
// batch_elimination.hpp, a solution is accepted only if its residual is as small as that of a
// stable method.
#pragma once
#include "simt/batch_elimination.hpp"

namespace wl {

// c += a b, of 8 x 4 and 4 x 8 elements. Lane l holds a(l / 4, l % 4), b(l % 4, l / 4), and the
// elements of row l / 4 of c in columns 2 (l % 4) and 2 (l % 4) + 1.
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

// The same product for two tiles of c, one below the other.
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

// Whether the reciprocal of a number takes no special case: the number is not zero, not infinite
// and not close to either. `upper` holds its upper bits without the sign.
WL_DEVICE bool is_usual(u32 upper) {
  constexpr u32 one = 0x3ff00000u, range = 0x3f000000u; // 2^-1008 to 2^1008
  return upper - (one - range) < 2u * range;
}

// The reciprocal of such a number; the result for another number has no meaning. A division would
// branch, and the compiler schedules no other instruction while a branch waits.
WL_DEVICE double inverse_of_usual(double v) {
#if defined(WL_CUDA) && __CUDA_ARCH__ >= 200
  double found;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(found) : "d"(v));
  double error = 1.0 - v * found;
  error = error + error * error;
  found = found + found * error;
  error = 1.0 - v * found;
  return found + found * error;
#else
  return 1.0 / v;
#endif
}

// A panel: four columns of a matrix of N rows, in shared memory. A lane processes rows lane, lane +
// WL_WARP, ...
template <int N>
struct panel_of_pivots {
  static constexpr int edge = 8, depth = 4; // the edge of a tile and the columns of a panel
  static constexpr int of_lane = (N + WL_WARP - 1) / WL_WARP;
  // The low bits of a key, which hold the number of a row.
  static constexpr u32 numbers = N <= 64 ? 63u : 255u;
  using two = pack<double, 2>;

  // One bit for each row of a lane; a bit is 1 if the row may still be a pivot.
  WL_DEVICE static u32 all_open(const item& it) {
    u32 open = 0u;
#pragma unroll
    for (int m = 0; m < of_lane; ++m)
      open |= lane_of(it) + m * WL_WARP < N ? 1u << m : 0u;
    return open;
  }

  // One wave turns the panel of columns 4 q to 4 q + 3, of `rows` rows, into the multipliers of the
  // pivot rows. `p` receives the pivot rows, -1 for columns beyond the matrix. Returns false if a
  // pivot is zero or not finite. The first lane calls found(column, row, pivot).
  template <class Found>
  WL_DEVICE static bool invert(const item& it, double* panel, int rows, int q, u32& open,
                               int (&p)[depth], const Found& found) {
    static_assert(N <= int(numbers) + 1, "a key has the number of a row");
    double a[of_lane][depth];
    const int lane = lane_of(it);
#pragma unroll
    for (int m = 0; m < of_lane; ++m) {
      const int row = lane + m * WL_WARP;
#pragma unroll
      for (int u = 0; u < depth; u += 2) {
        const two loaded =
            row < rows ? *reinterpret_cast<two*>(panel + row * depth + u) : two{{0.0, 0.0}};
        a[m][u] = loaded.at[0];
        a[m][u + 1] = loaded.at[1];
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
      // The key of the largest absolute value, to 12 or 14 bits, with the row; only rows that were
      // no pivots yet are searched. A lane with few elements computes their reciprocals in the
      // meantime, because each step waits for the result of the step before.
      constexpr bool inverts_all = of_lane <= 2;
      u32 key = 0u;
      double inverses[of_lane];
#pragma unroll
      for (int m = 0; m < of_lane; ++m) {
        const u32 size = pivot_key(a[m][k]) - 1u;
        const u32 of_row = (size & ~numbers) | (numbers - u32(lane + m * WL_WARP));
        const u32 counted = (open >> m & 1u) != 0u ? of_row : 0u;
        key = counted > key ? counted : key;
        inverses[m] = inverts_all ? inverse_of_usual(a[m][k]) : 0.0;
      }
      const u32 largest = largest_of_wave(it, key);
      const int row = int(numbers - (largest & numbers)), from = row % WL_WARP;
      p[k] = row;
      double of_pivot[depth], inverse = inverses[0];
      // Both values are read before one is selected: otherwise CUDA's compiler selects between
      // their addresses, which moves the array to local memory.
#pragma unroll
      for (int u = 0; u < depth; ++u) {
        double chosen = a[0][u];
#pragma unroll
        for (int m = 1; m < of_lane; ++m) {
          const double other = a[m][u];
          chosen = row / WL_WARP == m ? other : chosen;
        }
        of_pivot[u] = shuffle(chosen, from);
      }
      if constexpr (inverts_all) {
        const double other = inverses[of_lane - 1];
        inverse = shuffle(row < WL_WARP ? inverse : other, from);
      } else {
        inverse = inverse_of_usual(of_pivot[k]);
      }
      if (!is_usual(largest)) {
        const double size = pivot_size(of_pivot[k]);
        if (!(size > 0.0) || !finite(size))
          return false;
        inverse = 1.0 / of_pivot[k];
      }
      if (lane == 0)
        found(q * depth + k, row, of_pivot[k]);
      double scaled[depth];
#pragma unroll
      for (int u = 0; u < depth; ++u)
        scaled[u] = u == k ? inverse : of_pivot[u] * inverse;
#pragma unroll
      for (int m = 0; m < of_lane; ++m) {
        const bool is_pivot = lane + m * WL_WARP == row;
        const double of_row = a[m][k];
        open &= is_pivot ? ~(1u << m) : ~0u;
#pragma unroll
        for (int u = 0; u < depth; ++u) {
          const double others = u == k ? of_row * -inverse : a[m][u] - of_row * scaled[u];
          a[m][u] = is_pivot ? scaled[u] : others;
        }
      }
    }
#pragma unroll
    for (int m = 0; m < of_lane; ++m) {
      const int row = lane + m * WL_WARP;
      if (row < rows) {
#pragma unroll
        for (int u = 0; u < depth; u += 2)
          *reinterpret_cast<two*>(panel + row * depth + u) = two{{a[m][u], a[m][u + 1]}};
      }
    }
    return true;
  }
};

// Columns of tiles that are updated by one piece of code.
constexpr int SHARED_TEXT = 1;

// The shared memory of a block and the registers of a lane for a system of N rows.
template <int N>
struct tiled_system {
  using panels = panel_of_pivots<N>;
  static constexpr int edge = panels::edge, depth = panels::depth;
  static constexpr int down = (N + edge - 1) / edge; // rows of tiles
  // columns of tiles; column N is the right-hand side
  static constexpr int across = (N + edge) / edge;
  static constexpr int distance = ((N + 1) / 2 | 1) * 2; // distance of two rows in shared memory
  static constexpr int of_pivot = across * edge + depth; // distance of two pivot rows
  using two = pack<double, 2>;

  double* tile;   // the matrix, N x distance
  double* panel;  // 8 down x 4
  double* pivots; // the rows of four pivots, 4 x of_pivot
  i32* steps;     // the column for which a row is the pivot

  double c[down][across][2];

  // Loads the matrix from shared memory. Elements beyond it become zero.
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

  // Stores the panel of columns 4 q to 4 q + 3; its column of tiles is J.
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

  // Adds the multiples of the pivot rows to all rows, from column J of the tiles on. The pivot rows
  // themselves are zero before.
  template <int J = 0>
  WL_DEVICE void update(const item& it, int q, const int (&p)[depth]) {
    if (q / 2 < J + SHARED_TEXT) {
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
    } else if constexpr (J + SHARED_TEXT < across) {
      update<J + SHARED_TEXT>(it, q, p);
    }
  }

  // x = the solution; false if a pivot is zero or not finite. Ends with a barrier.
  WL_DEVICE bool solve(const item& it, double* x) {
    for (int e = it.thread(); e < depth * of_pivot; e += WL_BLOCK)
      pivots[e] = 0.0;
    u32 open = panels::all_open(it);
#pragma unroll 1
    for (int q = 0; q < (N + depth - 1) / depth; ++q) {
      store_panel(it, q);
      it.barrier();
      int p[depth];
      if (!panels::invert(it, panel, down * edge, q, open, p,
                          [&](int step, int row, double) { steps[row] = step; }))
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

// Block k, which is one wave, solves system k with matrix[k] or, if `matrix` is null, with matrix
// k. No matrix has two entries in one element.
template <int N>
WL_DEVICE void batch_tiles(const item& it, i64 count, i64 n, const i32* places, const i64* matrix,
                           i64 entries, const double* values, const double* b, double* x,
                           const double* relative, const double* absolute, i64 apart,
                           const double* limits, i64 /*refine*/, u8* codes, i64* iterations,
                           double* norms, double* thresholds, i32* undecided) {
  using system = tiled_system<N>;
  static_assert(N > 0 && N <= 2 * WL_WARP && WL_BLOCK == WL_WARP && WL_WARP == 32,
                "a wave has all tiles");
  using rows = eliminated_rows<N, system::panels::of_lane, double>;
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
