// The edge function between the two products, applied to stored samples.
#pragma once
#include "simt/fusedmm.hpp"
#include "simt/row_groups.hpp"

namespace wl {

// Blocks of a batch that a group processes together, so that their loads are in flight at the same
// time.
constexpr int SIDE_BY_SIDE = 4;

// Samples of a row in `count` blocks of a batch; the blocks are `apart` elements apart.
template <class T, class At = T*>
struct samples_of_row {
  using S = held_t<T>;
  At at;
  i64 apart, begin, end;
  int count;

  WL_DEVICE S read(int n, i64 e, S otherwise) const {
    return n < count && e < end ? S(widen(at[n * apart + e])) : otherwise;
  }
  WL_DEVICE void write(int n, i64 e, S value) const {
    if (n < count && e < end)
      at[n * apart + e] = narrowed<T>::of(value);
  }
};

// Where the logarithms of the totals of rows are stored, in blocks that are `apart` elements apart;
// null if they are not stored.
template <class S>
struct log_totals_of_row {
  S* at;
  i64 apart;
};

// Softmax. Samples of a row that is not longer than the group stay in registers. Samples of a
// longer row are read three times: for the largest score, for the sum of powers, and for the
// division by this sum.
template <class Group, class T>
WL_DEVICE void softmax_of_row(const Group& group, const samples_of_row<T>& row,
                              const log_totals_of_row<held_t<T>>& log_totals) {
  using S = held_t<T>;
  constexpr int N = SIDE_BY_SIDE;
  S largest[N], powers[N] = {}, mine[N];
#pragma unroll
  for (int n = 0; n < N; ++n)
    largest[n] = mine[n] = row.read(n, row.begin + group.rank(), lowest<S>());
  for (i64 e = row.begin + group.rank() + group.size; e < row.end; e += group.size)
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const S s = row.read(n, e, lowest<S>());
      largest[n] = s > largest[n] ? s : largest[n];
    }
  group.reduce(largest, larger<S>());
#pragma unroll
  for (int n = 0; n < N; ++n) {
    mine[n] = row.begin + group.rank() < row.end ? power_from(mine[n], largest[n]) : S{};
    powers[n] = mine[n];
  }
  for (i64 e = row.begin + group.rank() + group.size; e < row.end; e += group.size)
#pragma unroll
    for (int n = 0; n < N; ++n)
      powers[n] += power_from(row.read(n, e, lowest<S>()), largest[n]);
  group.reduce(powers, adding<S>());
  if (log_totals.at && group.rank() == 0)
#pragma unroll
    for (int n = 0; n < N; ++n)
      if (n < row.count)
        log_totals.at[n * log_totals.apart] = log_of_total(largest[n], powers[n]);
#pragma unroll
  for (int n = 0; n < N; ++n)
    powers[n] = powers[n] == S(0) ? S(1) : powers[n]; // weights of a row without weight are 0
#pragma unroll
  for (int n = 0; n < N; ++n)
    row.write(n, row.begin + group.rank(), mine[n] / powers[n]);
  for (i64 e = row.begin + group.rank() + group.size; e < row.end; e += group.size)
#pragma unroll
    for (int n = 0; n < N; ++n)
      row.write(n, e, power_from(row.read(n, e, lowest<S>()), largest[n]) / powers[n]);
}

// Applies an edge function to samples.
template <int EDGE, class T>
struct edge_of_rows {
  i64 batch;
  T* samples;
  i64 apart;
  held_t<T>* log_totals;
  i64 log_totals_apart;

  template <class Group>
  WL_DEVICE void operator()(const Group& group, i64 i, i64 part, i64 begin, i64 end) const {
    using S = held_t<T>;
    constexpr int N = SIDE_BY_SIDE;
    const i64 left = batch - part * N;
    const samples_of_row<T> row{samples + part * N * apart, apart, begin, end,
                                left < N ? int(left) : N};
    if constexpr (EDGE == SOFTMAX) {
      S* const its_logs = log_totals ? log_totals + part * N * log_totals_apart + i : nullptr;
      softmax_of_row(group, row, log_totals_of_row<S>{its_logs, log_totals_apart});
    } else if constexpr (EDGE == SIGMOID) {
      for (i64 e = begin + group.rank(); e < end; e += group.size)
#pragma unroll
        for (int n = 0; n < N; ++n)
          row.write(n, e, sigmoid(row.read(n, e, S{})));
    }
  }
};
template <int EDGE, class T, class I>
WL_DEVICE void edge_rows(const item& it, i64 m, i64 batch, const I* indptr, T* samples, i64 apart,
                         held_t<T>* log_totals, i64 log_totals_apart) {
  for_each_row<8 * WL_WARP>(
      it, m, (batch + SIDE_BY_SIDE - 1) / SIDE_BY_SIDE, indptr,
      edge_of_rows<EDGE, T>{batch, samples, apart, log_totals, log_totals_apart});
}

// Converts gradients of weights to gradients of scores, in the same array.
template <int EDGE, class T>
struct edge_gradients_of_rows {
  i64 batch;
  const T* weights;
  i64 weights_apart;
  T* gradients;
  i64 gradients_apart;

  template <class Group>
  WL_DEVICE void operator()(const Group& group, i64, i64 part, i64 begin, i64 end) const {
    using S = held_t<T>;
    constexpr int N = SIDE_BY_SIDE;
    const i64 first = part * N, left = batch - first;
    const int count = left < N ? int(left) : N;
    const samples_of_row<T, const T*> of_weights{weights + first * weights_apart, weights_apart,
                                                 begin, end, count};
    const samples_of_row<T> row{gradients + first * gradients_apart, gradients_apart, begin, end,
                                count};
    S mean[N] = {};
    if constexpr (EDGE == SOFTMAX) {
      for (i64 e = begin + group.rank(); e < end; e += group.size)
#pragma unroll
        for (int n = 0; n < N; ++n)
          mean[n] += of_weights.read(n, e, S{}) * row.read(n, e, S{});
      group.reduce(mean, adding<S>());
    }
    for (i64 e = begin + group.rank(); e < end; e += group.size)
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const S weight = of_weights.read(n, e, S{}), g = row.read(n, e, S{});
        row.write(n, e, (g - mean[n]) * (EDGE == SIGMOID ? weight * (S(1) - weight) : weight));
      }
  }
};
template <int EDGE, class T, class I>
WL_DEVICE void edge_gradients(const item& it, i64 m, i64 batch, const I* indptr, const T* weights,
                              i64 weights_apart, T* gradients, i64 gradients_apart) {
  for_each_row<8 * WL_WARP>(
      it, m, (batch + SIDE_BY_SIDE - 1) / SIDE_BY_SIDE, indptr,
      edge_gradients_of_rows<EDGE, T>{batch, weights, weights_apart, gradients, gradients_apart});
}

} // namespace wl
