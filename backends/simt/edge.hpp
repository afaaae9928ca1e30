// What lies between the two products, applied to samples where they are stored.
#pragma once
#include "fusedmm.hpp"

namespace wl {

// A wave has a row. Softmax goes over it three times: for the largest, for the sum of powers, and
// to divide by that.
template <int EDGE, class T, class I>
WL_DEVICE void edge_rows(const item& it, i64 m, i64 nnz, i64 batch, const I* indptr, T* samples) {
  using S = held_t<T>;
  constexpr int waves = WL_BLOCK / WL_WARP;
  const int lane = lane_of(it);
  for (i64 u = it.block() * waves + wave_of(it); u < m * batch; u += it.blocks() * waves) {
    const unit_of unit(u, m, 1);
    T* const of_block = samples + unit.b * nnz;
    const i64 begin = indptr[unit.i] + lane, end = indptr[unit.i + 1];
    if constexpr (EDGE == SIGMOID) {
      for (i64 e = begin; e < end; e += WL_WARP)
        of_block[e] = narrowed<T>::of(sigmoid(widen(of_block[e])));
    } else if constexpr (EDGE == SOFTMAX) {
      S largest = lowest<S>(), powers{};
      for (i64 e = begin; e < end; e += WL_WARP) {
        const S s = widen(of_block[e]);
        largest = s > largest ? s : largest;
      }
      for (int d = 1; d < WL_WARP; d *= 2) {
        const S other = shuffle_xor(it, largest, d);
        largest = other > largest ? other : largest;
      }
      for (i64 e = begin; e < end; e += WL_WARP) {
        const S power = power_from(S(widen(of_block[e])), largest);
        powers += power;
        of_block[e] = narrowed<T>::of(power);
      }
      const S share = S(1) / sum_of_lanes<WL_WARP>(it, powers);
      for (i64 e = begin; e < end; e += WL_WARP)
        of_block[e] = narrowed<T>::of(widen(of_block[e]) * share);
    }
  }
}

// Gradients of weights to those of scores, where they are stored; a wave has a row.
template <int EDGE, class T, class I>
WL_DEVICE void edge_gradients(const item& it, i64 m, i64 nnz, i64 batch, const I* indptr,
                              const T* weights, T* gradients) {
  using S = held_t<T>;
  constexpr int waves = WL_BLOCK / WL_WARP;
  const int lane = lane_of(it);
  for (i64 u = it.block() * waves + wave_of(it); u < m * batch; u += it.blocks() * waves) {
    const unit_of unit(u, m, 1);
    const T* const of_weights = weights + unit.b * nnz;
    T* const of_block = gradients + unit.b * nnz;
    const i64 begin = indptr[unit.i] + lane, end = indptr[unit.i + 1];
    if constexpr (EDGE == SIGMOID) {
      for (i64 e = begin; e < end; e += WL_WARP) {
        const S weight = widen(of_weights[e]);
        of_block[e] = narrowed<T>::of(widen(of_block[e]) * weight * (S(1) - weight));
      }
    } else if constexpr (EDGE == SOFTMAX) {
      S mean{};
      for (i64 e = begin; e < end; e += WL_WARP)
        mean += S(widen(of_weights[e])) * S(widen(of_block[e]));
      mean = sum_of_lanes<WL_WARP>(it, mean);
      for (i64 e = begin; e < end; e += WL_WARP)
        of_block[e] = narrowed<T>::of(widen(of_weights[e]) * (widen(of_block[e]) - mean));
    }
  }
}

} // namespace wl
