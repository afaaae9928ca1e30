// The elementwise maximum of the rows of a dense matrix that a sparse row selects. For the gradient
// of the maximum: sums over the elements that are equal to the maximum.
#pragma once
#include "simt/fusedmm.hpp"
#include "simt/packs.hpp"
#include "simt/row_groups.hpp"

namespace wl {

// Entries that each lane of a group loads before it uses the first of them.
constexpr int ENTRIES_AHEAD = 8;

// The columns of a dense operand: L adjacent lanes hold V vectors of E each. Lanes of a group with
// numbers that differ by L process the entries of a row in turn. WHOLE: no lane is beyond the last
// column.
template <int L, int V, int E, int WHOLE>
struct columns_of_lane {
  static constexpr int width = L * V * E, long_row = 4 * ENTRIES_AHEAD * WL_WARP / L;
  i64 first, k;
  WL_DEVICE columns_of_lane(int rank, i64 tile, i64 columns)
      : first(tile * width + rank % L * E), k(columns) {}
  WL_DEVICE i64 column(int v) const { return first + v * L * E; }
  WL_DEVICE bool has(int v) const { return WHOLE || column(v) < k; }
  template <class T>
  WL_DEVICE pack<T, E> load(const T* row, int v) const {
    return load_part<WHOLE, T, E>(has(v), row, column(v));
  }
  // The same where a vector may be unaligned.
  template <class T>
  WL_DEVICE void store_each(T* row, const T* values) const {
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (has(v))
        for (int e = 0; e < E; ++e)
          row[column(v) + e] = values[v * E + e];
  }
  template <class T>
  WL_DEVICE void store(T* row, const held_t<T>* values) const {
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (has(v))
        store_pack<T, E>(row + column(v), values + v * E, held_t<T>(1), held_t<T>(0));
  }
};

// Calls body(entry, is_present) for ENTRIES_AHEAD entries at a time; absent entries repeat the last
// one.
template <int L, class Group, class Body>
WL_DEVICE void for_entries(const Group& group, i64 begin, i64 end, Body& body) {
  constexpr int U = ENTRIES_AHEAD;
  const int side = group.size / L;
  for (i64 e = begin + group.rank() / L; e < end; e += U * side) {
    i64 at[U];
    bool there[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      there[u] = e + u * side < end;
      at[u] = there[u] ? e + u * side : end - 1;
    }
    body(at, there);
  }
}

// A batch of matrices with any row and block strides.
template <class T>
struct blocks_of {
  T* data;
  i64 ld, step;
  WL_DEVICE T* row(i64 block, i64 i) const { return data + block * step + i * ld; }
};

// C_i = the elementwise maximum of the rows of B that row i selects; NaN is larger than all
// numbers.
template <int L, int V, int E, int WHOLE, class T, class I>
struct largest_of_rows {
  using S = held_t<T>;
  using lanes = columns_of_lane<L, V, E, WHOLE>;
  i64 k, tiles;
  const I* indices;
  blocks_of<const T> B;
  blocks_of<T> C;

  struct running {
    const largest_of_rows& of;
    const lanes& mine;
    i64 block;
    S most[V * E];

    WL_DEVICE void operator()(const i64 (&at)[ENTRIES_AHEAD], const bool (&)[ENTRIES_AHEAD]) {
      pack<T, E> rows[ENTRIES_AHEAD][V];
#pragma unroll
      for (int u = 0; u < ENTRIES_AHEAD; ++u)
#pragma unroll
        for (int v = 0; v < V; ++v)
          rows[u][v] = mine.load(of.B.row(block, of.indices[at[u]]), v);
#pragma unroll
      for (int u = 0; u < ENTRIES_AHEAD; ++u)
#pragma unroll
        for (int i = 0; i < V * E; ++i)
          most[i] = larger<S>()(S(widen(rows[u][i / E].at[i % E])), most[i]);
    }
  };

  template <class Group>
  WL_DEVICE void operator()(const Group& group, i64 row, i64 part, i64 begin, i64 end) const {
    const lanes mine(group.rank(), part % tiles, k);
    running found{*this, mine, part / tiles, {}};
#pragma unroll
    for (int i = 0; i < V * E; ++i)
      found.most[i] = begin < end ? lowest<S>() : S{};
    for_entries<L>(group, begin, end, found);
    group.reduce(found.most, larger<S>(), L);
    if (group.rank() < L)
      mine.store(C.row(part / tiles, row), found.most);
  }
};
template <int L, int V, int E, int WHOLE, class T, class I>
WL_DEVICE void csr_spmm_max(const item& it, i64 m, i64 k, i64 batch, const I* indptr,
                            const I* indices, const T* B, i64 B_ld, i64 B_step, T* C, i64 C_ld,
                            i64 C_step) {
  using lanes = columns_of_lane<L, V, E, WHOLE>;
  const i64 tiles = (k + lanes::width - 1) / lanes::width;
  for_each_row<lanes::long_row>(it, m, batch * tiles, indptr,
                                largest_of_rows<L, V, E, WHOLE, T, I>{
                                    k, tiles, indices, {B, B_ld, B_step}, {C, C_ld, C_step}});
}

// Z_i = the sum of the elements of the rows of G that row i selects, where Y equals X_i.
template <int L, int V, int E, int WHOLE, class T, class I>
struct sum_where_equal {
  using S = held_t<T>;
  using lanes = columns_of_lane<L, V, E, WHOLE>;
  i64 k, tiles;
  const I* indices;
  blocks_of<const T> X, Y, G;
  blocks_of<T> Z;

  struct running {
    const sum_where_equal& of;
    const lanes& mine;
    i64 block;
    S own[V * E], sums[V * E];

    WL_DEVICE void operator()(const i64 (&at)[ENTRIES_AHEAD], const bool (&there)[ENTRIES_AHEAD]) {
      pack<T, E> of_Y[ENTRIES_AHEAD][V], of_G[ENTRIES_AHEAD][V];
#pragma unroll
      for (int u = 0; u < ENTRIES_AHEAD; ++u) {
        const i64 other = of.indices[at[u]];
#pragma unroll
        for (int v = 0; v < V; ++v) {
          of_Y[u][v] = mine.load(of.Y.row(block, other), v);
          of_G[u][v] = mine.load(of.G.row(block, other), v);
        }
      }
#pragma unroll
      for (int u = 0; u < ENTRIES_AHEAD; ++u)
#pragma unroll
        for (int i = 0; i < V * E; ++i) {
          const S y = widen(of_Y[u][i / E].at[i % E]), g = widen(of_G[u][i / E].at[i % E]);
          sums[i] += there[u] && y == own[i] ? g : S{};
        }
    }
  };

  template <class Group>
  WL_DEVICE void operator()(const Group& group, i64 row, i64 part, i64 begin, i64 end) const {
    const lanes mine(group.rank(), part % tiles, k);
    running found{*this, mine, part / tiles, {}, {}};
#pragma unroll
    for (int i = 0; i < V * E; ++i) {
      const pack<T, E> x = mine.load(X.row(part / tiles, row), i / E);
      found.own[i] = widen(x.at[i % E]);
    }
    for_entries<L>(group, begin, end, found);
    group.reduce(found.sums, adding<S>(), L);
    if (group.rank() < L)
      mine.store(Z.row(part / tiles, row), found.sums);
  }
};
template <int L, int V, int E, int WHOLE, class T, class I>
WL_DEVICE void csr_spmm_where_equal(const item& it, i64 m, i64 k, i64 batch, const I* indptr,
                                    const I* indices, const T* X, i64 X_ld, i64 X_step, const T* Y,
                                    i64 Y_ld, i64 Y_step, const T* G, i64 G_ld, i64 G_step, T* Z,
                                    i64 Z_ld, i64 Z_step) {
  using lanes = columns_of_lane<L, V, E, WHOLE>;
  const i64 tiles = (k + lanes::width - 1) / lanes::width;
  for_each_row<lanes::long_row>(it, m, batch * tiles, indptr,
                                sum_where_equal<L, V, E, WHOLE, T, I>{k,
                                                                      tiles,
                                                                      indices,
                                                                      {X, X_ld, X_step},
                                                                      {Y, Y_ld, Y_step},
                                                                      {G, G_ld, G_step},
                                                                      {Z, Z_ld, Z_step}});
}

} // namespace wl
