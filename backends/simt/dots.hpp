// Dot products of rows by groups of lanes, shared by sddmm and fusedmm.
#pragma once
#include "simt/packs.hpp"
#include "unified/long_sums.hpp"

namespace wl {

// How a wave traverses the entries of a row. A batch holds one entry for each lane of the wave.
// Group g of L lanes processes entries g, side + g, 2 side + g, ... of the batch. Lane l of the
// group loads number l of these entries, so that the loads of a batch are coalesced for every batch
// length.
template <int L, class I>
struct batch_of {
  static constexpr int side = WL_WARP / L;
  int group, l;

  WL_DEVICE explicit batch_of(const item& it) : group(lane_of(it) / L), l(lane_of(it) % L) {}
  WL_DEVICE static int count(I begin, I end) {
    return end - begin < I(WL_WARP) ? int(end - begin) : WL_WARP;
  }
  // The position in the batch of entry number `at` of this group.
  WL_DEVICE int place(int at) const { return at * side + group; }
  // The entry that this lane loads. Lanes beyond the end repeat the last entry, so that every
  // address is valid.
  WL_DEVICE I own(I begin, int count) const {
    const int mine = place(l);
    return begin + I(mine < count ? mine : count - 1);
  }
  // The lane that loads entry number `at` of this group.
  WL_DEVICE int lane_with(int at) const { return group * L + at; }
};

// Properties of the dense operands known at compile time. SOME: a row differs in length from the
// elements that the lanes hold, or there are several tiles of columns. ALL: neither is the case.
// ALONE: as ALL, and there is one batch of contiguous rows, which saves 8 to 16 registers.
enum known_of_rows { SOME = 0, ALL = 1, ALONE = 2 };

// The largest number of vectors of a row that the lanes hold (dot_shape in
// backends/gpu/products/declarations.py). A kernel for longer rows holds this number and loads a
// row strip by strip.
constexpr int MOST_HELD = 128;

template <int L, int V, int WHOLE>
constexpr bool has_strips = WHOLE == SOME && L * V == MOST_HELD;

// The sum plus the dot product of V vectors of each of two rows.
template <class S, class T, int E, int V>
WL_DEVICE S dot_of_packs(S sum, const pack<T, E> (&a)[V], const pack<T, E> (&b)[V]) {
#pragma unroll
  for (int v = 0; v < V; ++v)
    sum = dot_pack<T, E>(sum, a[v], b[v]);
  return sum;
}

// A dot product that is added up strip by strip. In single precision the strips are the pieces of a
// long sum.
template <bool STRIPS, class S, bool PIECES = STRIPS && sums_in_pieces<S>>
struct dot_of_strips {
  S total{};
  // Adds the dot product of V vectors of each of two strips.
  template <class T, int E, int V>
  WL_DEVICE void add(const pack<T, E> (&a)[V], const pack<T, E> (&b)[V]) {
    total = dot_of_packs(total, a, b);
  }
  WL_DEVICE S value() const { return total; }
};
template <bool STRIPS, class S>
struct dot_of_strips<STRIPS, S, true> {
  long_sum<S> total{};
  template <class T, int E, int V>
  WL_DEVICE void add(const pack<T, E> (&a)[V], const pack<T, E> (&b)[V]) {
    total.add(dot_of_packs(S{}, a, b));
  }
  WL_DEVICE S value() const { return total.value(); }
};

} // namespace wl
