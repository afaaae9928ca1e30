// C = alpha A B + beta C by the dense product: A is stored with its zeros. Where B is infinite or
// NaN, a zero of A times B is NaN, which the sparse product would not compute; such sums are
// corrected. S = alpha <C_i, B_j> A_ij + beta S by the dense product, read at the positions of the
// pattern.
#pragma once
#include "simt/packs.hpp"

namespace wl {

// Writes a dense matrix, zeros and entries together. A block writes `rows` rows, or one of the
// `parts` of a row, `width` columns; TEAM lanes share a row. The elements are arranged in BYTES of
// shared memory and then written to consecutive addresses in vectors. `dense` begins at a multiple
// of a vector's bytes.
template <int BYTES, int TEAM, class T, class I>
WL_DEVICE void dense_fill(const item& it, i64 m, i64 n, i64 rows, i64 parts, i64 width,
                          const I* indptr, const I* indices, const T* values, T* dense) {
  constexpr int E = 16 / int(sizeof(T)), ahead = 4, teams = WL_BLOCK / TEAM;
  using P = pack<T, E>;
  WL_SHARED(P, kept, BYTES / 16);
  const u32 block = u32(it.block()), each = u32(parts), group = block / each;
  const i64 first = group * rows, last = first + rows < m ? first + rows : m,
            left = (block - group * each) * width, right = left + width < n ? left + width : n,
            begin = first * n + left;
  if (first >= m || left >= right)
    return; // all work-items of the block return
  const int count = int((last - first - 1) * n + (right - left)), shift = int(begin % E),
            vectors = (shift + count + E - 1) / E;
  for (int v = it.thread(); v < vectors; v += WL_BLOCK)
    kept[v] = P{};
  it.barrier();
  const int lane = it.thread() % TEAM;
  for (i64 row = first + it.thread() / TEAM; row < last; row += teams) {
    const int origin = int(shift + (row - first) * n - left);
    const i64 end = indptr[row + 1];
    for (i64 e = indptr[row] + lane; e < end; e += ahead * TEAM) {
      I columns[ahead];
      T numbers[ahead];
#pragma unroll
      for (int a = 0; a < ahead; ++a) {
        const i64 mine = e + a * TEAM, own = mine < end ? mine : end - 1;
        columns[a] = read_once(indices + own);
        numbers[a] = read_once(values + own);
      }
#pragma unroll
      for (int a = 0; a < ahead; ++a)
        if (e + a * TEAM < end && columns[a] >= left && columns[a] < right) {
          const u32 at = u32(origin + int(columns[a]));
          kept[at / E].at[at % E] = numbers[a];
        }
    }
  }
  it.barrier();
  T* const target = dense + (begin - shift);
  for (int v = it.thread(); v < vectors; v += WL_BLOCK) {
    const int at = v * E;
    const P whole = kept[v];
    if (at >= shift && at + E <= shift + count) {
      *reinterpret_cast<P*>(target + at) = whole;
      continue;
    }
    for (int e = 0; e < E; ++e)
      if (at + e >= shift && at + e < shift + count)
        target[at + e] = whole.at[e];
  }
}

// Writes entries to their positions among zeros: a wave writes a row.
template <class T, class I>
WL_DEVICE void dense_scatter(const item& it, i64 m, i64 n, const I* indptr, const I* indices,
                             const T* values, T* dense) {
  const i64 row = it.block() * (WL_BLOCK / WL_WARP) + wave_of(it);
  if (row >= m)
    return;
  for (i64 e = indptr[row] + lane_of(it); e < indptr[row + 1]; e += WL_WARP)
    dense[row * n + indices[e]] = values[e];
}

// S = alpha P_ij A_ij + beta S for the rows from `top` on of P = C B^T, which are stored. A wave
// processes a part of a row, the last part first, since the caches still hold the end of the
// product. PLAIN = 1: P is alpha C B^T in T already and equals S; otherwise P has the type of the
// sums, so that S is rounded once.
template <int PLAIN, class T, class I>
WL_DEVICE void dense_sample(const item& it, i64 first, i64 items, i64 top, i64 ld, const I* bounds,
                            const I* target, const I* indices, const T* values, const u8* product,
                            T* sampled, held_t<T> alpha, held_t<T> beta) {
  using S = held_t<T>;
  constexpr int ahead = 4;
  const i64 u = it.block() * (WL_BLOCK / WL_WARP) + wave_of(it);
  if (u >= items)
    return; // the whole wave returns
  const i64 i = first + items - 1 - u, end = bounds[i + 1], row = (target[i] - top) * ld;
  for (i64 p = bounds[i] + lane_of(it); p < end; p += ahead * WL_WARP) {
    i64 places[ahead];
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      const i64 e = p + a * WL_WARP;
      places[a] = row + read_once(indices + (e < end ? e : end - 1));
    }
    if constexpr (PLAIN) {
      T numbers[ahead];
#pragma unroll
      for (int a = 0; a < ahead; ++a)
        numbers[a] = reinterpret_cast<const T*>(product)[places[a]];
#pragma unroll
      for (int a = 0; a < ahead; ++a)
        if (p + a * WL_WARP < end)
          sampled[p + a * WL_WARP] = numbers[a];
    } else {
      S numbers[ahead];
#pragma unroll
      for (int a = 0; a < ahead; ++a)
        numbers[a] = reinterpret_cast<const S*>(product)[places[a]];
#pragma unroll
      for (int a = 0; a < ahead; ++a) {
        const i64 e = p + a * WL_WARP;
        if (e < end)
          store_narrowed(sampled[e], values ? numbers[a] * widen(values[e]) : numbers[a], alpha,
                         beta);
      }
    }
  }
}

// The initial value of a sum that an overwritten element holds.
template <class S>
WL_DEVICE bool is_finite(S v) {
  return v - v == S(0);
}

// The number in row `row` and column `column` of A B, computed from the entries by the whole wave.
template <class T, class I>
WL_DEVICE held_t<T> dense_entry(const item& it, i64 row, i64 column, const I* indptr,
                                const I* indices, const T* values, const T* B, i64 B_ld) {
  held_t<T> sum{};
  for (i64 e = indptr[row] + lane_of(it); e < indptr[row + 1]; e += WL_WARP)
    sum += widen(values[e]) * widen(B[indices[e] * B_ld + column]);
  return sum_of_lanes<WL_WARP>(it, sum);
}

// C = alpha P + beta C where P = A B is the product of dense matrices: a wave processes WL_WARP
// numbers of a row. Elements of P that are not finite are computed from the entries.
template <class T, class I>
WL_DEVICE void dense_add(const item& it, i64 m, i64 k, const I* indptr, const I* indices,
                         const T* values, const T* B, i64 B_ld, const u8* product, T* C, i64 C_ld,
                         held_t<T> alpha, held_t<T> beta) {
  using S = held_t<T>;
  const i64 tiles = (k + WL_WARP - 1) / WL_WARP,
            u = it.block() * (WL_BLOCK / WL_WARP) + wave_of(it), row = u / tiles,
            first = u % tiles * WL_WARP, c = first + lane_of(it);
  if (row >= m)
    return; // the whole wave returns
  S mine{};
  if (c < k)
    mine = reinterpret_cast<const S*>(product)[row * k + c];
  u64 votes = ballot(!is_finite(mine));
  for (int lane = 0; votes; ++lane, votes >>= 1) {
    if (!(votes & 1))
      continue; // the whole wave continues
    const S sum = dense_entry(it, row, first + lane, indptr, indices, values, B, B_ld);
    if (lane == lane_of(it))
      mine = sum;
  }
  if (c < k)
    store_narrowed(C[row * C_ld + c], mine, alpha, beta);
}

// Corrects C = alpha A B after a product of dense matrices. If a number of B is not finite, the
// dense product multiplied it by an element of every row of A, an entry or a zero, so that no
// element of its column of C is finite. So a single row shows which columns may have to be
// corrected. A block corrects every `it.blocks()`th row. It tests its first row, and returns if all
// elements are finite. This first test is short.
template <class T, class I>
WL_DEVICE void dense_mend(const item& it, i64 m, i64 k, const I* indptr, const I* indices,
                          const T* values, const T* B, i64 B_ld, T* C, i64 C_ld, held_t<T> alpha) {
  const T* const row_of_block = C + it.block() * C_ld;
  bool mine = false;
#pragma unroll 1
  for (int c = it.thread(); c < int(k); c += WL_BLOCK)
    mine = mine || !is_finite(widen(row_of_block[c]));
  if (!__syncthreads_or(mine))
    return; // all work-items of the block return
  // A wave corrects WL_WARP columns. If there are fewer groups of columns than waves, several waves
  // share the rows of a group.
  constexpr int waves = WL_BLOCK / WL_WARP;
  const int chunks = int((k + WL_WARP - 1) / WL_WARP), apart = chunks < waves ? chunks : waves,
            sharing = waves / apart, wave = int(wave_of(it)), share = wave / apart;
  for (int begin = 0; begin < chunks; begin += waves) {
    const i64 first = i64(begin + wave % apart) * WL_WARP, c = first + lane_of(it);
    u64 votes = ballot(c < k && !is_finite(widen(row_of_block[c < k ? c : 0])));
    it.barrier(); // every check ends before the first correction
    if (share >= sharing)
      continue;
    for (i64 column = first; votes; ++column, votes >>= 1) {
      if (!(votes & 1))
        continue; // the whole wave continues
      for (i64 row = it.block() + share * it.blocks(); row < m; row += sharing * it.blocks()) {
        T* const place = C + row * C_ld + column;
        if (is_finite(widen(*place)))
          continue; // the whole wave continues
        const held_t<T> sum = dense_entry(it, row, column, indptr, indices, values, B, B_ld);
        if (lane_of(it) == 0)
          store_narrowed(*place, sum, alpha, held_t<T>(0));
      }
    }
  }
}

} // namespace wl
