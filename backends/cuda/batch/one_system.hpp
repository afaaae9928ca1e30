// The steps of a solver for one system that a block has to itself: vectors are in memory of the
// block, a work-item has the rows thread, thread + WL_BLOCK, ... in every step.
#pragma once
#include "precision.hpp"
#include "spmv.hpp"
#include "structure.hpp"

namespace wl {

// The sum over the block, in the first work-item. All sums of a type share their memory.
template <class S>
WL_DEVICE S total_of_block(const item& it, S value) {
  WL_SHARED(S, of_wave, WL_BLOCK / WL_WARP);
  return sum_in_first_wave(it, value, of_wave);
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

// y = alpha A x + beta y; LANES of a wave share a row.
template <int LANES, class T, class S, class I>
WL_DEVICE void multiply_rows(const item& it, i64 n, const I* indptr, const I* indices,
                             const S* data, const T* x, T* y, T alpha, T beta) {
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

// The entries of the row of a work-item in its registers, W at most.
template <class S, int W>
struct held_row {
  S values[W];
  i32 columns[W];
  int length = 0;

  template <class I>
  WL_DEVICE void load(const item& it, i64 n, const I* indptr, const I* indices, const S* data, S*) {
    const i64 row = it.thread();
    const I begin = row < n ? indptr[row] : I(0);
    length = row < n ? int(indptr[row + 1] - begin) : 0;
#pragma unroll
    for (int u = 0; u < W; ++u) {
      values[u] = u < length ? data[begin + u] : S(0);
      columns[u] = u < length ? i32(indices[begin + u]) : 0;
    }
  }

  template <class T>
  WL_DEVICE T times(const T* x) const {
    T sum{};
#pragma unroll
    for (int u = 0; u < W; ++u)
      if (u < length)
        sum += value_as<T>(values[u]) * x[columns[u]];
    return sum;
  }
};

// All N elements of the row of a work-item, zeros too. Neighbouring lanes load the entries of a row
// to the tile of N x (N | 1) elements, in which no two work-items write one element.
template <class S, int N>
struct dense_row {
  static constexpr int stride = N | 1, lanes = 8, parts = 3;
  S values[N];

  template <class I>
  WL_DEVICE void load(const item& it, i64, const I* indptr, const I* indices, const S* data,
                      S* tile) {
    for (int e = it.thread(); e < N * stride; e += WL_BLOCK)
      tile[e] = S(0);
    it.barrier();
    for (int row = it.thread() / lanes; row < N; row += WL_BLOCK / lanes)
      for (I e = indptr[row] + it.thread() % lanes; e < indptr[row + 1]; e += lanes)
        tile[row * stride + indices[e]] = data[e];
    it.barrier();
    const int row = it.thread() < N ? it.thread() : 0;
#pragma unroll
    for (int j = 0; j < N; ++j)
      values[j] = tile[row * stride + j];
  }

  template <class T>
  WL_DEVICE T times(const T* x) const {
    T sums[parts]{};
#pragma unroll
    for (int j = 0; j < N; ++j)
      sums[j % parts] += value_as<T>(values[j]) * x[j];
    return sums[0] + (sums[1] + sums[2]);
  }
};

// y = alpha A x + beta y of rows in registers.
template <class T, class Row>
WL_DEVICE void multiply_own_row(const item& it, i64 n, const Row& held, const T* x, T* y, T alpha,
                                T beta) {
  const i64 row = it.thread();
  if (row < n)
    store(y[row], held.times(x), alpha, beta);
}

// d_i = the sum of the entries at (i, i).
template <class T, class I>
WL_DEVICE void diagonal_of_rows(const item& it, i64 n, const I* indptr, const I* indices,
                                const T* data, T* d) {
  for (i64 row = it.thread(); row < n; row += WL_BLOCK)
    d[row] = diagonal_entry(row, indptr, indices, data);
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
