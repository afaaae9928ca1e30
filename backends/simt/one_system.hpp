// The steps of a solver for one system that a block has to itself. Either vectors are in memory of
// the block, and a work-item has the rows thread, thread + WL_BLOCK, ... in every step. Or a
// work-item has one row, with the elements of vectors in its registers; only the vectors that
// products gather from are in memory of the block.
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

// The sum over the block, in the first work-item. All sums of a type share their memory.
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

// f(row, index of its elements in vectors) for the rows of a work-item. OWN_ROW is 1 where it
// has one row, and the vectors begin at its elements.
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

// A functor on all rows, without a sum.
template <class F>
WL_DEVICE void for_rows(const item& it, i64 n, const F& f) {
  const auto state = f.column(0);
  if (state.active)
    for (i64 row = it.thread(); row < n; row += WL_BLOCK)
      f(row, 0, state);
}

// A functor on all rows, and its last step with the sum. Ends with a barrier.
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

// A functor on the row of a work-item, where vectors begin at its elements, without a sum.
template <class F>
WL_DEVICE void for_own_row(bool has_row, const F& f) {
  const auto state = f.column(0);
  if (state.active && has_row)
    f(0, 0, state);
}

// A functor on the rows of all work-items, and its last step with the sum. Ends with a barrier.
template <class F>
WL_DEVICE void add_up_own_rows(const item& it, bool has_row, const F& f) {
  const auto state = f.column(0);
  typename F::sum sum{};
  if (state.active && has_row)
    sum += f(0, 0, state);
  sum = total_of_block(it, sum);
  if (it.thread() == 0 && state.active)
    f.finish(0, sum);
  it.barrier();
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

// The product of a row with a vector, by a work-item alone.
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

// y = alpha A x + beta y; LANES of a wave share a row.
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

// The entries of the row of a work-item in its registers, W at most. Columns have 16 bits. Zeros in
// the own column follow a shorter row.
template <class S, int W>
struct held_row {
  S values[W];
  u32 columns[(W + 1) / 2];

  template <class I>
  WL_DEVICE void load(const item& it, i64 n, const I* indptr, const I* indices, const S* data) {
    const i64 row = it.thread();
    const I begin = row < n ? indptr[row] : I(0);
    const int length = row < n ? int(indptr[row + 1] - begin) : 0;
    const u32 own = row < n ? u32(row) : 0u;
#pragma unroll
    for (int u = 0; u < (W + 1) / 2; ++u)
      columns[u] = own << 16 | own;
#pragma unroll
    for (int u = 0; u < W; ++u) {
      values[u] = u < length ? data[begin + u] : S(0);
      const u32 column = u < length ? u32(indices[begin + u]) : own;
      columns[u / 2] = u % 2 == 0 ? (columns[u / 2] & 0xffff0000u) | column
                                  : (columns[u / 2] & 0xffffu) | column << 16;
    }
  }

  WL_DEVICE u32 column(int u) const {
    return u % 2 == 0 ? columns[u / 2] & 0xffffu : columns[u / 2] >> 16;
  }

  template <class T>
  WL_DEVICE T times(const T* x) const {
    T sum{};
#pragma unroll
    for (int u = 0; u < W; ++u)
      sum += value_as<T>(values[u]) * x[column(u)];
    return sum;
  }

  // The sum of the entries on the diagonal.
  WL_DEVICE S on_diagonal(const item& it) const {
    S sum{};
#pragma unroll
    for (int u = 0; u < W; ++u)
      sum += column(u) == u32(it.thread()) ? values[u] : S(0);
    return sum;
  }
};

// All N elements of the row of a work-item, zeros too. Entries go through a tile of N x (N | 1)
// elements, in which no two work-items write one element: `places` has the element of each.
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

  template <class T>
  WL_DEVICE T times(const T* x) const {
    T sums[parts]{};
#pragma unroll
    for (int j = 0; j < N; ++j)
      sums[j % parts] += value_as<T>(values[j]) * x[j];
    return sums[0] + (sums[1] + sums[2]);
  }

  WL_DEVICE S on_diagonal(const item&) const { return diagonal; }
};

// y = alpha A x + beta y of rows in registers.
template <class T, class Row>
WL_DEVICE void multiply_own_row(bool has_row, const Row& held, const T* x, T* y, T alpha, T beta) {
  if (has_row)
    store(*y, held.times(x), alpha, beta);
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
