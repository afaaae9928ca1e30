// The steps of a solver where a block solves one system. There are two layouts. Either all vectors
// are in shared memory, and a work-item processes the rows thread, thread + WL_BLOCK, ... in every
// step. Or a work-item holds the elements of vectors for some rows in registers, and only the
// vectors that products gather from are in shared memory.
#pragma once
#include "simt/not_a_number.hpp"
#include "unified/precision.hpp"
#include "simt/spmv.hpp"
#include "simt/structure.hpp"
#include "simt/tile_entries.hpp"

namespace wl {

// The least power of 2 that is not below a number.
template <int N>
constexpr int power_from = 2 * power_from<(N + 1) / 2>;
template <>
constexpr int power_from<1> = 1;

// The sum over the block, returned to the first work-item. All sums of a type use the same shared
// memory.
template <class S>
WL_DEVICE S total_of_block(const item& it, S value) {
  constexpr int waves = WL_BLOCK / WL_WARP;
  static_assert(waves <= WL_WARP, "a wave holds the sums of all waves");
  value = sum_of_lanes<WL_WARP>(it, value);
  if constexpr (waves == 1)
    return value;
  WL_SHARED(S, of_wave, waves);
  if (lane_of(it) == 0)
    of_wave[wave_of(it)] = value;
  it.barrier();
  if (wave_of(it) == 0)
    value = sum_of_lanes<power_from<waves>>(it, lane_of(it) < waves ? of_wave[lane_of(it)] : S{});
  return value;
}

// f(row, index of its elements in vectors) for the rows of a work-item. OWN_ROW is 1 where the
// work-item has one row; vectors then point to the element of this row.
template <int OWN_ROW, class F>
WL_DEVICE void for_rows_of_item(const item& it, i64 n, const F& f) {
  if constexpr (OWN_ROW) {
    if (it.thread() < n)
      f(i64(it.thread()), i64(0));
  } else {
    for (i64 row = it.thread(); row < n; row += WL_BLOCK)
      f(row, row);
  }
}

// Evaluates a functor without a sum on all rows.
template <class F>
WL_DEVICE void for_rows(const item& it, i64 n, const F& f) {
  const auto state = f.column(0);
  if (state.active)
    for (i64 row = it.thread(); row < n; row += WL_BLOCK)
      f(row, 0, state);
}

// Evaluates a functor on all rows, and its last step with the sum. Ends with a barrier.
template <class F>
WL_DEVICE void add_up_rows(const item& it, i64 n, const F& f) {
  const auto state = f.column(0);
  typename F::sum sum{};
  if (state.active)
    for (i64 row = it.thread(); row < n; row += WL_BLOCK)
      sum += f(row, 0, state);
  sum = total_of_block(it, sum);
  if (it.thread() == 0 && state.active)
    f.finish(0, sum);
  it.barrier();
}

// The rows of a work-item: `first`, and further rows `distance` apart, P at most. Work-items of a
// wave have adjacent rows, so that they access different banks.
template <int P>
struct own_rows {
  static constexpr int most = P, distance = WL_BLOCK;
  int first, count;

  WL_DEVICE own_rows(const item& it, i64 n) : first(it.thread()) {
    const int left = int(n) - first;
    const int found = left <= 0 ? 0 : (left - 1) / distance + 1;
    count = found < P ? found : P;
  }
};

// The rows for which a lane holds the elements of vectors, where a wave holds a dense matrix of N
// rows: a group of lanes has adjacent rows, and divides them among its lanes.
template <int N>
struct tile_rows {
  static constexpr int lanes = 4, of_group = (N * lanes + WL_WARP - 1) / WL_WARP,
                       most = (of_group + lanes - 1) / lanes, distance = 1;
  int first, count;

  WL_DEVICE tile_rows(const item& it, i64) {
    const int group = it.thread() / lanes, begin = it.thread() % lanes * most;
    first = group * of_group + begin;
    const int in_group = of_group - begin, in_all = N - first;
    const int left = in_group < in_all ? in_group : in_all;
    count = left < 0 ? 0 : left < most ? left : most;
  }
};

// f(m) for the rows of a work-item.
template <class Own, class F>
WL_DEVICE void for_each_own(const Own& own, const F& f) {
#pragma unroll
  for (int m = 0; m < Own::most; ++m)
    if (m < own.count)
      f(m);
}

// Evaluates a functor without a sum on the rows of a work-item. Vectors point to the elements of
// these rows.
template <class Own, class F>
WL_DEVICE void for_own_rows(const Own& own, const F& f) {
  const auto state = f.column(0);
  if (state.active)
    for_each_own(own, [&](int m) { f(m, 0, state); });
}

// Evaluates a functor on the rows of all work-items, and its last step with the sum. Ends with a
// barrier.
template <class Own, class F>
WL_DEVICE void add_up_own_rows(const item& it, const Own& own, const F& f) {
  const auto state = f.column(0);
  typename F::sum sum{};
  if (state.active)
    for_each_own(own, [&](int m) { sum += f(m, 0, state); });
  sum = total_of_block(it, sum);
  if (it.thread() == 0 && state.active)
    f.finish(0, sum);
  it.barrier();
}

// A vector that points to a work-item's first element. Its elements are `distance` apart: 1 in
// registers.
template <class Own, class T>
WL_DEVICE void copy_own_rows(const Own& own, const T* from, int from_distance, T* to,
                             int to_distance) {
  for_each_own(own, [&](int m) { to[m * to_distance] = from[m * from_distance]; });
}

template <class Own, class T>
WL_DEVICE void clear_own_rows(const Own& own, T* to, int distance) {
  for_each_own(own, [&](int m) { to[m * distance] = T{}; });
}

// A value of the matrix in the dtype of a product.
template <class T, class S>
WL_DEVICE T value_as(S value) {
  if constexpr (same<T, S>::value)
    return value;
  else
    return widened<T>(value);
}

// Entries of a row that a work-item loads before it uses the first of them.
constexpr int AHEAD = 4;

// The product of a row with a vector, computed by one work-item.
template <class T, class S, class I>
WL_DEVICE T row_times(I begin, I end, const I* indices, const S* data, const T* x) {
  T sums[AHEAD]{};
  I e = begin;
  for (; e + AHEAD <= end; e += AHEAD) {
#pragma unroll
    for (int u = 0; u < AHEAD; ++u)
      sums[u] += value_as<T>(data[e + u]) * x[indices[e + u]];
  }
  for (; e < end; ++e)
    sums[0] += value_as<T>(data[e]) * x[indices[e]];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// y = alpha A x + beta y; LANES lanes of a wave share a row.
template <int LANES, class T, class S, class I>
WL_DEVICE void multiply_rows(const item& it, i64 n, const I* indptr, const I* indices,
                             const S* data, const T* x, T* y, T alpha, T beta) {
  if constexpr (WL_BLOCK == 1) {
    for (i64 row = 0; row < n; ++row)
      store(y[row], row_times(indptr[row], indptr[row + 1], indices, data, x), alpha, beta);
    return;
  }
  constexpr int together = WL_BLOCK / LANES;
  for (i64 base = 0; base < n; base += together) {
    const i64 row = base + it.thread() / LANES;
    T sum{};
    if (row < n) {
      const I end = indptr[row + 1];
      for (I e = indptr[row] + it.thread() % LANES; e < end; e += AHEAD * LANES) {
        S values[AHEAD];
        I columns[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) {
          const I at = e + u * LANES < end ? e + u * LANES : e;
          values[u] = data[at];
          columns[u] = indices[at];
        }
#pragma unroll
        for (int u = 0; u < AHEAD; ++u)
          if (e + u * LANES < end)
            sum += value_as<T>(values[u]) * x[columns[u]];
      }
    }
    if constexpr (LANES > 1)
      sum = sum_of_lanes<LANES>(it, sum);
    if (row < n && it.thread() % LANES == 0)
      store(y[row], sum, alpha, beta);
  }
}

// The entries of the rows of a work-item in registers, at most W for each of P rows. Columns have
// 16 bits. A shorter row is padded with zeros.
template <class S, int W, int P>
struct held_rows {
  S values[P][W];
  u32 columns[P][(W + 1) / 2];

  // `pairs` holds two columns in each number; the numbers of adjacent work-items are adjacent, so
  // that loads are coalesced. Loads from the column indices of CSR would not be. Row i has the
  // entries begins[i] to begins[i + 1].
  WL_DEVICE void load(const item& it, const u32* pairs, const i32* begins, const S* data) {
    constexpr int words = (W + 1) / 2;
#pragma unroll
    for (int m = 0; m < P; ++m) {
      const int row = it.thread() + m * WL_BLOCK;
      const i32 begin = begins[row], length = begins[row + 1] - begin;
#pragma unroll
      for (int u = 0; u < words; ++u)
        columns[m][u] = pairs[(m * words + u) * WL_BLOCK + it.thread()];
#pragma unroll
      for (int u = 0; u < W; ++u)
        values[m][u] = u < length ? data[begin + u] : S(0);
    }
  }

  WL_DEVICE u32 column(int m, int u) const {
    return u % 2 == 0 ? columns[m][u / 2] & 0xffffu : columns[m][u / 2] >> 16;
  }

  // Calls out(m, element m of the product).
  template <class T, class Out>
  WL_DEVICE void times(const item&, const own_rows<P>&, const T* x, const Out& out) const {
#pragma unroll
    for (int m = 0; m < P; ++m) {
      T sum{};
#pragma unroll
      for (int u = 0; u < W; ++u)
        sum += value_as<T>(values[m][u]) * x[column(m, u)];
      out(m, sum);
    }
  }

  // The sum of the entries on the diagonal.
  WL_DEVICE S on_diagonal(const own_rows<P>& own, int m) const {
    S sum{};
#pragma unroll
    for (int u = 0; u < W; ++u)
      sum += column(m, u) == u32(own.first + m * own.distance) ? values[m][u] : S(0);
    return sum;
  }
};

// All N elements of the row of a work-item, including zeros. The entries pass through a tile of N x
// (N | 1) elements, to which no two entries go: `places` holds the element of each entry.
template <class S, int N>
struct dense_row {
  static constexpr int stride = N | 1, parts = 3, together = 16;
  S values[N];
  S diagonal;

  WL_DEVICE void load(const item& it, const i32* places, i64 entries, const S* data, S* tile) {
    for (int e = it.thread(); e < N * stride; e += WL_BLOCK)
      tile[e] = S(0);
    it.barrier();
    scatter_entries<together>(it, places, entries, data, tile);
    it.barrier();
    const int row = it.thread() < N ? it.thread() : 0;
#pragma unroll
    for (int j = 0; j < N; ++j)
      values[j] = tile[row * stride + j];
    diagonal = tile[row * stride + row];
  }

  template <class T, class Out>
  WL_DEVICE void times(const item&, const own_rows<1>&, const T* x, const Out& out) const {
    T sums[parts]{};
#pragma unroll
    for (int j = 0; j < N; ++j)
      sums[j % parts] += value_as<T>(values[j]) * x[j];
    out(0, sums[0] + (sums[1] + sums[2]));
  }

  WL_DEVICE S on_diagonal(const own_rows<1>&, int) const { return diagonal; }
};

// Bytes of matrix elements that a lane loads together.
constexpr int AT_ONCE = 64;

// All elements of a matrix of N rows in a block of one wave. A group of lanes has adjacent rows,
// and each lane every `lanes`-th column of them: KEPT columns in registers, the others in shared
// memory. With fewer registers for each wave a multiprocessor holds more waves. An element of a
// vector that a lane loads serves all rows of its group; with one row in each lane, every element
// would take a load.
template <class S, int N, int KEPT>
struct dense_tile {
  using rows = tile_rows<N>;
  static constexpr int together = 16, lanes = rows::lanes;
  static constexpr int height = rows::of_group, width = (N + lanes - 1) / lanes, most = rows::most;
  static constexpr int others = width - KEPT, of_lanes = height * WL_WARP + lanes;
  S values[height][KEPT];
  S diagonal[most];
  const S* rest;

  // Element (i, j) of a lane is at (j height + i) WL_WARP in shared memory: adjacent lanes access
  // different banks. The columns for registers pass through shared memory first. A move holds an
  // entry in its low half and the element of the tile in its upper half; the first `in_registers`
  // moves are for the columns in registers.
  WL_DEVICE void load(const item& it, const u32* moves, i64 in_registers, i64 entries,
                      const S* data, S* tile) {
    static_assert(N > 0 && WL_BLOCK == WL_WARP, "a wave has all rows");
    static_assert(KEPT > 0 && KEPT <= width, "a lane has columns in registers");
    ask_for(it, data, entries);
    const rows own(it, N);
#pragma unroll
    for (int m = 0; m < most; ++m)
      diagonal[m] = S(0);
    fill<0, KEPT>(it, own, moves, in_registers, data, tile);
#pragma unroll
    for (int i = 0; i < height; ++i)
#pragma unroll
      for (int j = 0; j < KEPT; ++j)
        values[i][j] = tile[j * of_lanes + i * WL_WARP + it.thread()];
    rest = tile + it.thread();
    if constexpr (others > 0) {
      it.barrier();
      fill<KEPT, others>(it, own, moves + in_registers, entries - in_registers, data, tile);
    }
  }

  template <class T, class Out>
  WL_DEVICE void times(const item& it, const rows&, const T* x, const Out& out) const {
    const int lane = it.thread() % lanes;
    T sums[lanes * most]{};
    add_columns<0>(lane, x, sums);
    // Each step halves the number of sums of a lane; in the end a lane holds the sums of its own
    // rows.
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      const bool upper = (lane & distance) != 0;
#pragma unroll
      for (int a = 0; a < distance * most; ++a) {
        const T low = sums[a], high = sums[a + distance * most];
        const T given = upper ? low : high;
        sums[a] = (upper ? high : low) + shuffle_xor(it, given, distance);
      }
    }
#pragma unroll
    for (int m = 0; m < most; ++m)
      out(m, sums[m]);
  }

  WL_DEVICE S on_diagonal(const rows&, int m) const { return diagonal[m]; }

private:
  // Adds the products of columns FIRST and later ones of the lane. The elements of several columns
  // are loaded before the first of them is used. CUDA's compiler would load all of them into one
  // register where registers are scarce, and a wave would wait for each load.
  template <int FIRST, class T>
  WL_DEVICE void add_columns(int lane, const T* x, T (&sums)[lanes * most]) const {
    constexpr bool kept = FIRST < KEPT;
    constexpr int left = (kept ? KEPT : width) - FIRST;
    constexpr int of_column = height * int(sizeof(S));
    constexpr int of_memory = of_column < AT_ONCE ? AT_ONCE / of_column : 1;
    constexpr int together = kept ? AHEAD : of_memory, count = left < together ? left : together;
    T of_x[count];
    S elements[kept ? 1 : count][height];
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const int column = lane + (FIRST + j) * lanes;
      of_x[j] = column < N ? x[column] : T(0);
#pragma unroll
      for (int i = 0; i < height; ++i)
        if constexpr (!kept)
          elements[j][i] = rest[(FIRST + j - KEPT) * of_lanes + i * WL_WARP];
    }
    asked_before();
#pragma unroll
    for (int j = 0; j < count; ++j)
#pragma unroll
      for (int i = 0; i < height; ++i) {
        if constexpr (kept)
          sums[i] += value_as<T>(values[i][FIRST + j]) * of_x[j];
        else
          sums[i] += value_as<T>(elements[j][i]) * of_x[j];
      }
    if constexpr (FIRST + count < width)
      add_columns<FIRST + count>(lane, x, sums);
  }

  // Stores columns FIRST to FIRST + COUNT of all lanes in the tile, including zeros. Ends with a
  // barrier.
  template <int FIRST, int COUNT>
  WL_DEVICE void fill(const item& it, const rows& own, const u32* moves, i64 count, const S* data,
                      S* tile) {
#pragma unroll 8
    for (int e = it.thread(); e < COUNT * of_lanes; e += WL_WARP)
      tile[e] = S(0);
    it.barrier();
    move_entries<together>(it, moves, int(count), data, tile);
    it.barrier();
    const int group = it.thread() / lanes;
#pragma unroll
    for (int m = 0; m < most; ++m) {
      const int row = own.first + m, j = row / lanes - FIRST;
      if (m < own.count && j >= 0 && j < COUNT)
        diagonal[m] =
            tile[j * of_lanes + (row - group * height) * WL_WARP + group * lanes + row % lanes];
    }
  }
};

// y = alpha A x + beta y for rows in registers; elements of y are `distance` apart.
template <class T, class Own, class Held>
WL_DEVICE void multiply_own_rows(const item& it, const Own& own, const Held& held, const T* x, T* y,
                                 int distance, T alpha, T beta) {
  held.times(it, own, x, [&](int m, T product) {
    if (m < own.count)
      store(y[m * distance], product, alpha, beta);
  });
}

// d_i = the sum of the entries at (i, i), for rows in registers.
template <class Own, class Held, class T>
WL_DEVICE void diagonal_of_own_rows(const Own& own, const Held& held, T* d, int distance) {
  for_each_own(own, [&](int m) { d[m * distance] = held.on_diagonal(own, m); });
}

// d_i = the sum of the entries at (i, i).
template <class T, class I>
WL_DEVICE void diagonal_of_rows(const item& it, i64 n, const I* indptr, const I* indices,
                                const T* data, T* d) {
  for (i64 row = it.thread(); row < n; row += WL_BLOCK)
    d[row] = diagonal_entry(row, indptr, indices, data);
}

// Whether all elements of a vector are 0.
template <class T>
WL_DEVICE bool are_zero(const item& it, i64 n, const T* v) {
  i64 others = 0;
  for (i64 row = it.thread(); row < n; row += WL_BLOCK)
    others += v[row] == T(0) ? 0 : 1;
  return sum_of_block(it, others) == 0;
}

template <class T>
WL_DEVICE void copy_rows(const item& it, i64 n, const T* from, T* to) {
  for (i64 row = it.thread(); row < n; row += WL_BLOCK)
    to[row] = from[row];
}

template <class T>
WL_DEVICE void clear_rows(const item& it, i64 n, T* to) {
  for (i64 row = it.thread(); row < n; row += WL_BLOCK)
    to[row] = T{};
}

} // namespace wl
