// Products of tiles with rows in shared memory (tile_rows.hpp), with two kinds of instructions: by
// warps, for all tensor cores from compute capability 8.0 on, and by warpgroups, for 9.0. A lane
// holds the same sums with both kinds.
#pragma once
#include "cuda/products/hopper_instructions.hpp"
#include "cuda/products/tile_rows.hpp"

namespace wl {

// Four words of the weights of 16 positions of 16 rows, rounded, in the register layout of
// products.
template <class T, int N>
WL_DEVICE void pack_weights(const float (&weights)[N][4], int s, u32 (&words)[4]) {
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float* const two = weights[2 * s + e / 2] + e % 2 * 2;
    words[e] = narrow_both<T>(two[0], two[1]);
  }
}

// A warp processes 16 M rows. Products complete immediately.
template <int DIM, int M, class T>
struct products_by_warps {
  static constexpr bool WAITS = false;

  // Weights of 16 M x 8 N positions: they are rounded when they are used, which takes no registers.
  template <int N>
  struct weights_of {
    const float (&weights)[M][N][4];
    WL_DEVICE explicit weights_of(const float (&weights)[M][N][4]) : weights(weights) {}
  };

  WL_DEVICE static void publish() {}
  WL_DEVICE static void begin() {}
  WL_DEVICE static void end() {}
  template <int Left, class... Held>
  WL_DEVICE static void wait(Held&...) {}

  // Whether one of the rows that a product computes together has an entry.
  WL_DEVICE static bool any(const unsigned char*, int, int, const bits_of_rows<M>& bits) {
    return ballot(bits.any()) != 0;
  }

  // sums (16 M x 8 N) = rows of X from `row` on times rows of Y from `first` on
  template <int N>
  WL_DEVICE static void multiply(float (&sums)[M][N][4], u32 X, int row, u32 Y, int first,
                                 int lane) {
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int j = 0; j < N; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          sums[i][j][e] = 0;
#pragma unroll
    for (int s = 0; s < DIM / 16; ++s) {
      u32 x[M][4];
#pragma unroll
      for (int i = 0; i < M; ++i)
        load_cores(x[i], X + chunk_at<DIM>(row + 16 * i + lane % 16, 2 * s, lane / 16));
#pragma unroll
      for (int j = 0; j < N; j += 2) {
        u32 y[4];
        load_cores(
            y, Y + chunk_at<DIM>(first + 8 * j + lane / 16 * 8 + lane % 8, 2 * s, lane / 8 % 2));
#pragma unroll
        for (int i = 0; i < M; ++i) {
          add_product<T>(sums[i][j], x[i], y[0], y[1]);
          add_product<T>(sums[i][j + 1], x[i], y[2], y[3]);
        }
      }
    }
  }

  // sums (16 M x DIM) += weights (16 M x 8 N) times rows of Y from `first` on
  template <int N>
  WL_DEVICE static void add(float (&sums)[M][DIM / 8][4], const weights_of<N>& factors, u32 Y,
                            int first, int lane) {
#pragma unroll
    for (int s = 0; s < N / 2; ++s) {
      u32 x[M][4];
#pragma unroll
      for (int i = 0; i < M; ++i)
        pack_weights<T>(factors.weights[i], s, x[i]);
#pragma unroll
      for (int j = 0; j < DIM / 8; j += 2) {
        u32 y[4];
        load_cores_transposed(y, Y + chunk_at<DIM>(first + 16 * s + lane % 16, j, lane / 16));
#pragma unroll
        for (int i = 0; i < M; ++i) {
          add_product<T>(sums[i][j], x[i], y[0], y[1]);
          add_product<T>(sums[i][j + 1], x[i], y[2], y[3]);
        }
      }
    }
  }
};

// A warpgroup processes 64 rows, and each of its warps 16. Products are issued between `begin` and
// `end` and run asynchronously. `wait` waits for all but the last `Pending` products, and names the
// registers that they read and write.
template <int DIM, class T>
struct products_by_warpgroups {
  static constexpr bool WAITS = true;
  static constexpr u32 of_eight_rows = DIM * 16;

  // Weights of 16 x 8 N positions: running products read these words.
  template <int N>
  struct weights_of {
    u32 words[N / 2][4];
    WL_DEVICE explicit weights_of(const float (&weights)[1][N][4]) {
#pragma unroll
      for (int s = 0; s < N / 2; ++s)
        pack_weights<T>(weights[0], s, words[s]);
    }
  };
  template <int N>
  WL_DEVICE static void keep_all(weights_of<N>& held) {
    keep(held.words);
  }
  template <int N>
  WL_DEVICE static void keep_all(float (&held)[1][N][4]) {
    keep(held);
  }

  WL_DEVICE static void publish() { publish_to_products(); }
  WL_DEVICE static void begin() { wgmma_fence(); }
  WL_DEVICE static void end() { wgmma_commit(); }
  template <int Left, class... Held>
  WL_DEVICE static void wait(Held&... held) {
    wgmma_wait<Left>();
    (keep_all(held), ...);
  }

  WL_DEVICE static bool any(const unsigned char* words, int row, int lane, const bits_of_rows<1>&) {
    const uint4* const two = reinterpret_cast<const uint4*>(words) + row / 64 * 32 + lane;
    return ballot((two->x | two->y | two->z | two->w) != 0) != 0;
  }

  // The descriptor of the first 16 numbers of the rows from `row` on.
  WL_DEVICE static u64 from(u32 rows, int row) {
    return rows_descriptor<DIM>(rows + row / 8 * of_eight_rows);
  }

  template <int N>
  WL_DEVICE static void multiply(float (&sums)[1][N][4], u32 X, int row, u32 Y, int first, int) {
    const u64 x = from(X, row & ~63), y = from(Y, first);
#pragma unroll
    for (int s = 0; s < DIM / 16; ++s) {
      const u64 on = (s / 4 * 1024 + s % 4 * 32) >> 4;
      tile_product<8 * N, T>::add(sums[0][0], x + on, y + on, s > 0);
    }
  }

  template <int N>
  WL_DEVICE static void add(float (&sums)[1][DIM / 8][4], const weights_of<N>& weights, u32 Y,
                            int first, int) {
    const u64 y = from(Y, first);
#pragma unroll
    for (int s = 0; s < N / 2; ++s)
      weighted_product<DIM, T>::add(sums[0][0], weights.words[s], y + (2 * s * of_eight_rows >> 4),
                                    1);
  }
};

template <int WARPGROUPS, int DIM, int M, class T>
struct products_of {
  static_assert(!WARPGROUPS, "a warp of a warpgroup has 16 rows");
  using type = products_by_warps<DIM, M, T>;
};
template <int DIM, class T>
struct products_of<1, DIM, 1, T> {
  using type = products_by_warpgroups<DIM, T>;
};

} // namespace wl
