// C = alpha A B + beta C by the dense product: A with its zeros, and what the zeros do wrong put
// right. Where B has an infinity or a NaN, a zero makes NaN of it, and the sparse product does not
// touch it.
#pragma once
#include "packs.hpp"

namespace wl {

// Puts entries in their places among zeros: a wave has a row.
template <class T, class I>
WL_DEVICE void dense_fill(const item& it, i64 m, i64 n, const I* indptr, const I* indices,
                          const T* values, T* dense) {
  const i64 row = it.block() * (WL_BLOCK / WL_WARP) + wave_of(it);
  if (row >= m)
    return;
  for (i64 e = indptr[row] + lane_of(it); e < indptr[row + 1]; e += WL_WARP)
    dense[row * n + indices[e]] = values[e];
}

// What a number that is added to others may be.
template <class S>
WL_DEVICE bool is_finite(S v) {
  return v - v == S(0);
}

// A wave has WL_WARP numbers of a row of a product of dense matrices. If all are finite there was
// nothing infinite that a zero could meet; those that are not are computed from the entries.
// IN_PLACE = 1: the product is in C already, alpha times; else it is in `product`, and beta C is
// added.
template <int IN_PLACE, class T, class I>
WL_DEVICE void dense_mend(const item& it, i64 m, i64 k, const I* indptr, const I* indices,
                          const T* values, const T* B, i64 B_ld, const u8* product, T* C, i64 C_ld,
                          held_t<T> alpha, held_t<T> beta) {
  using S = held_t<T>;
  const i64 tiles = (k + WL_WARP - 1) / WL_WARP,
            u = it.block() * (WL_BLOCK / WL_WARP) + wave_of(it), row = u / tiles,
            first = u % tiles * WL_WARP, c = first + lane_of(it);
  if (row >= m)
    return; // a whole wave
  S mine{};
  if (c < k)
    mine = IN_PLACE ? widen(C[row * C_ld + c]) : reinterpret_cast<const S*>(product)[row * k + c];
  const bool bad = !is_finite(mine);
  u64 votes = ballot(bad);
  for (int lane = 0; votes; ++lane, votes >>= 1) {
    if (!(votes & 1))
      continue; // the whole wave does
    S sum{};
    for (i64 e = indptr[row] + lane_of(it); e < indptr[row + 1]; e += WL_WARP)
      sum += widen(values[e]) * widen(B[indices[e] * B_ld + first + lane]);
    sum = sum_of_lanes<WL_WARP>(it, sum);
    if (lane == lane_of(it))
      mine = sum;
  }
  if (c < k && (bad || !IN_PLACE))
    store_narrowed(C[row * C_ld + c], mine, alpha, beta);
}

} // namespace wl
