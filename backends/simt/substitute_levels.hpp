// Substitution by wide levels on all multiprocessors. See wollemi.core.operations.triangular.
#pragma once
#include "simt/lanes.hpp"
#include "unified/triangular.hpp"

namespace wl {

// Each wave processes a part of a level, one row per lane, and counts the part when it is done. It
// begins a part of the next level when all parts of the current level are counted. Blocks wait for
// each other, so all of them must be resident.
#if defined(WL_LOCKSTEP)
// Emulated blocks run one after the other: the first one does all the work.
inline i64 level_waves(const item& it) { return it.block() == 0 ? WL_BLOCK / WL_WARP : 0; }
inline i64 level_wave(const item& it) { return wave_of(it); }
inline void wait_for_level(const item&, const i32*, i64) {}
inline void count_piece(const item&, i32*) {}
inline void end_level(const item& it) { it.barrier(); }
#else
WL_DEVICE i64 level_waves(const item& it) { return it.blocks() * (WL_BLOCK / WL_WARP); }
// Adjacent parts go to different multiprocessors.
WL_DEVICE i64 level_wave(const item& it) { return wave_of(it) * it.blocks() + it.block(); }
WL_DEVICE void wait_for_level(const item& it, const i32* done, i64 pieces) {
  if (lane_of(it) == 0) {
    while (*static_cast<const volatile i32*>(done) < pieces) {
    }
    fence();
  }
  wave_barrier();
}
WL_DEVICE void count_piece(const item& it, i32* done) {
  wave_barrier();
  if (lane_of(it) == 0) {
    fence();
    fetch_add(done, 1);
  }
}
WL_DEVICE void end_level(const item&) {}
#endif

// Row i with its first entries, which are loaded while other rows are computed.
template <class T, class I>
struct early_row {
  static constexpr int ahead = 8;
  i64 i, first, last;
  I columns[ahead];
  T values[ahead], own, inverse;

  WL_DEVICE early_row(const I* indptr, const I* indices, const T* data, const T* inverses,
                      const mat<T>& x, i64 row, i64 c)
      : i(row), first(indptr[row]), last(indptr[row + 1]), own(x(row, c)), inverse(inverses[row]) {
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      const i64 e = first + u;
      columns[u] = e < last ? indices[e] : I(row);
      values[u] = e < last ? data[e] : T(0);
    }
  }

  // The computation of substitute_row, in the same order of additions.
  WL_DEVICE void substitute(const I* indices, const T* data, T factor, i64 upper, mat<T> x,
                            i64 c) const {
    T sum(0);
    const auto add = [&](i64 j, T value) {
      if (upper ? j > i : j < i)
        sum += value * x(j, c);
    };
#pragma unroll
    for (int u = 0; u < ahead; ++u)
      add(columns[u], values[u]);
    for (i64 e = first + ahead; e < last; ++e)
      add(indices[e], data[e]);
    x(i, c) = inverse * (own + factor * sum);
  }
};

// done[0] to done[levels] are 0 before and after.
template <class T, class I>
WL_DEVICE void triangular_levels(const item& it, i64 levels, i64 k, const I* rows, const I* bounds,
                                 const I* indptr, const I* indices, const T* data, const T* inverse,
                                 T factor, i64 upper, mat<T> x, i32* done) {
  const i64 waves = level_waves(it), mine = level_wave(it);
  i64 before = 0;
  for (i64 l = 0; l < levels && waves > 0; ++l) {
    const i64 begin = bounds[l], count = (bounds[l + 1] - begin) * k;
    const i64 pieces = (count + WL_WARP - 1) / WL_WARP;
    for (i64 piece = mine; piece < pieces; piece += waves) {
      const i64 t = piece * WL_WARP + lane_of(it), element = t < count ? t : 0;
      const i64 c = element % k;
      const early_row<T, I> row(indptr, indices, data, inverse, x, rows[begin + element / k], c);
      if (l > 0)
        wait_for_level(it, done + l - 1, before);
      if (t < count)
        row.substitute(indices, data, factor, upper, x, c);
      count_piece(it, done + l);
    }
    end_level(it);
    before = pieces;
  }
  if (!is_last_block(it, done + levels))
    return;
  for (i64 l = it.thread(); l < levels; l += WL_BLOCK)
    done[l] = 0;
}

} // namespace wl
