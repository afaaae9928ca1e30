// The inverse of a dense matrix in double precision, in tiles of 8 x 8 elements that the registers
// of a block hold.
//
// A wave holds two adjacent rows of tiles. The Gauss-Jordan method with pivots inverts the matrix
// in place, four columns at a time, as batch_tiles.hpp does with one wave. The first wave turns a
// panel of four columns into the multipliers of the pivot rows. All waves then add the multiples of
// the pivot rows to their tiles, as products of 8 x 4 and 4 x 8 tiles. Four columns take three
// barriers; batch_grid.hpp takes eight.
#pragma once
#include "simt/batch_tiles.hpp"

namespace wl {

// PARTS waves share a row of tiles.
template <int N, int PARTS>
struct tiled_inverse {
  using panels = panel_of_pivots<N>;
  static constexpr int edge = panels::edge, depth = panels::depth;
  static constexpr int tiles = (N + edge - 1) / edge, groups = WL_BLOCK / WL_WARP / PARTS;
  // Rows and columns of tiles of a wave.
  static constexpr int down = (tiles + groups - 1) / groups, across = (tiles + PARTS - 1) / PARTS;
  static constexpr int rows = groups * down * edge;
  static constexpr int of_panel = rows * depth;
  static constexpr int of_pivot = PARTS * across * edge + depth; // elements of a stored pivot row
  // Integers in shared memory: the pivot rows of a panel, or a mark that there are none.
  static constexpr int words = depth;
  // Elements of shared memory: two panels, the pivot rows of one panel, and all pivots.
  static constexpr int elements = 2 * of_panel + depth * of_pivot + N;
  using two = pack<double, 2>;

  double* panel;
  double* pivots;
  double* pivot;
  u32* chosen;
  i32* owner; // the row that is the pivot of a step
  i32* steps; // the step of which a row is the pivot
  double c[down][across][2];

  // `memory` is aligned to 16 bytes.
  WL_DEVICE tiled_inverse(double* memory, u32* of_panels, i32* of_steps)
      : panel(memory), pivots(panel + 2 * of_panel), pivot(pivots + depth * of_pivot),
        chosen(of_panels), owner(of_steps), steps(of_steps + N) {}

  // The row of the matrix that a lane holds in row i of its wave's tiles, and the first of the two
  // columns that it holds in column j.
  WL_DEVICE static int row_of(const item& it, int i) {
    return (wave_of(it) / PARTS * down + i) * edge + lane_of(it) / 4;
  }
  WL_DEVICE static int column_of(const item& it, int j) {
    return (wave_of(it) % PARTS * across + j) * edge + 2 * (lane_of(it) % 4);
  }

  // Inverts the matrix in the tile, N x N; false if a pivot is zero or not finite.
  WL_DEVICE bool invert(const item& it, const double* tile) {
#pragma unroll
    for (int i = 0; i < down; ++i) {
      const int row = row_of(it, i);
#pragma unroll
      for (int j = 0; j < across; ++j)
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const int column = column_of(it, j) + u;
          c[i][j][u] = row < N && column < N ? tile[row * N + column] : 0.0;
        }
    }
    for (int e = it.thread(); e < depth * of_pivot; e += WL_BLOCK)
      pivots[e] = 0.0;
    u32 open = panels::all_open(it);
    bool fits = true;
#pragma unroll 1
    for (int q = 0; fits && q < (N + depth - 1) / depth; ++q) {
      double* const of_step = panel + q % 2 * of_panel;
      if (q / 2 / across == wave_of(it) % PARTS)
        store_panel<0, across>(it, q, of_step);
      it.barrier();
      if (wave_of(it) == 0) {
        int p[depth];
        const bool found =
            panels::invert(it, of_step, rows, q, open, p, [&](int step, int row, double value) {
              pivot[step] = value;
              owner[step] = row;
              steps[row] = step;
            });
        if (lane_of(it) == 0) {
#pragma unroll
          for (int k = 0; k < depth; ++k)
            chosen[k] = found ? u32(p[k]) : NO_PIVOT;
        }
      }
      it.barrier();
      int p[depth];
      fits = chosen[0] != NO_PIVOT;
#pragma unroll
      for (int k = 0; k < depth; ++k)
        p[k] = int(chosen[k]);
      store_rows(it, q, p);
      it.barrier();
      add(it, of_step);
    }
    return fits;
  }

  // d = the solution for r. Ends with a barrier.
  WL_DEVICE void apply(const item& it, const double* r, double* d, double* side) const {
    for (int i = it.thread(); i < N; i += WL_BLOCK)
      side[i] = r[owner[i]];
    it.barrier();
    double sums[down]{};
#pragma unroll
    for (int j = 0; j < across; ++j)
#pragma unroll
      for (int u = 0; u < 2; ++u) {
        const int column = column_of(it, j) + u;
        const double value = column < N ? side[column] : 0.0;
#pragma unroll
        for (int i = 0; i < down; ++i)
          sums[i] += c[i][j][u] * value;
      }
    double* const of_part = panel + wave_of(it) % PARTS * rows;
#pragma unroll
    for (int i = 0; i < down; ++i) {
      const double sum = sum_of_lanes<4>(it, sums[i]);
      if (lane_of(it) % 4 == 0)
        of_part[row_of(it, i)] = sum;
    }
    it.barrier();
    for (int i = it.thread(); i < N; i += WL_BLOCK) {
      double sum = panel[i];
#pragma unroll
      for (int part = 1; part < PARTS; ++part)
        sum += panel[part * rows + i];
      d[steps[i]] = sum;
    }
    it.barrier();
  }

private:
  static constexpr u32 NO_PIVOT = 0x7fffffffu;

  // Stores the panel of columns 4 q to 4 q + 3 and clears it. Its column of tiles is one of FIRST
  // to END - 1.
  template <int FIRST, int END>
  WL_DEVICE void store_panel(const item& it, int q, double* of_step) {
    if constexpr (END - FIRST > 1) {
      constexpr int middle = (FIRST + END) / 2;
      if (q / 2 % across < middle)
        store_panel<FIRST, middle>(it, q, of_step);
      else
        store_panel<middle, END>(it, q, of_step);
    } else if (lane_of(it) % 4 / 2 == q % 2) {
#pragma unroll
      for (int i = 0; i < down; ++i) {
        *reinterpret_cast<two*>(of_step + row_of(it, i) * depth + lane_of(it) % 2 * 2) =
            two{{c[i][FIRST][0], c[i][FIRST][1]}};
        c[i][FIRST][0] = c[i][FIRST][1] = 0.0;
      }
    }
  }

  // The lanes that hold a pivot row store it and clear it; the element of the pivot column is set
  // to 1.
  WL_DEVICE void store_rows(const item& it, int q, const int (&p)[depth]) {
    const int lane = lane_of(it);
#pragma unroll
    for (int i = 0; i < down; ++i) {
      const int row = row_of(it, i);
      int slot = -1;
#pragma unroll
      for (int k = 0; k < depth; ++k)
        slot = row == p[k] ? k : slot;
      if (slot < 0)
        continue;
      double* const place = pivots + slot * of_pivot;
#pragma unroll
      for (int j = 0; j < across; ++j) {
        *reinterpret_cast<two*>(place + column_of(it, j)) = two{{c[i][j][0], c[i][j][1]}};
        c[i][j][0] = c[i][j][1] = 0.0;
      }
      const int column = q * depth + slot, part = column / edge / across;
      if (part == wave_of(it) % PARTS && lane % 4 == column % edge / 2)
        place[column] = 1.0;
    }
  }

  // Adds the multiples of the pivot rows to all rows.
  WL_DEVICE void add(const item& it, const double* of_step) {
    const int lane = lane_of(it);
    double a[down];
#pragma unroll
    for (int i = 0; i < down; ++i)
      a[i] = of_step[row_of(it, i) * depth + lane % 4];
    const double* const place = pivots + lane % 4 * of_pivot + wave_of(it) % PARTS * across * edge;
#pragma unroll
    for (int j = 0; j < across; ++j) {
      const double b = place[j * edge + lane / 4];
#pragma unroll
      for (int i = 0; i + 1 < down; i += 2)
        multiply_tiles(it, c[i][j], c[i + 1][j], a[i], a[i + 1], b);
      if constexpr (down % 2 != 0)
        multiply_tiles(it, c[down - 1][j], a[down - 1], b);
    }
  }
};

} // namespace wl
