// y = alpha A x + beta y for rows of any length: each work-group processes one row block, and all
// row blocks have about the same number of entries. beta = 0 does not read y.
#pragma once
#include "unified/map_simt.hpp"
#include "simt/narrow.hpp"

namespace wl {

// The sum over groups of `width` adjacent lanes; `width` is a power of two and the same for the
// whole wave.
template <class T>
WL_DEVICE T sum_of_some_lanes(const item& it, T value, int width) {
  for (int d = width / 2; d > 0; d /= 2) {
    const T other = shuffle_xor(it, value, d);
    value += other;
  }
  return value;
}

template <int KEEP, class T>
WL_DEVICE T entry(const T* place) {
  return KEEP ? *place : read_once(place);
}

// One part of a row that is longer than a row block. The last work-group to finish adds up the
// parts in their order. counters[s] is 0 before and after; s is the row block that holds the first
// part of the row.
template <class T, class I>
WL_DEVICE void join_parts(const item& it, I begin, I most, const I* of_row, T sum, T& y, T alpha,
                          T beta, T* partial, i32* counters) {
  WL_SHARED(i32, last, 1);
  const I start = of_row[0];
  const i64 first = it.block() - (begin - start) / most;
  const int parts = int((of_row[1] - start + most - 1) / most), t = it.thread();
  sum = sum_of_block(it, sum);
  if (t == 0) {
    partial[it.block()] = sum;
    fence();
    last[0] = fetch_add(counters + first, 1) == parts - 1;
    if (last[0])
      counters[first] = 0;
  }
  it.barrier();
  if (last[0] == 0)
    return; // all work-items of the block return
  fence();
  sum = T{};
#pragma unroll 4
  for (int p = t; p < parts; p += WL_BLOCK)
    sum += partial[first + p];
  sum = sum_of_block(it, sum);
  if (t == 0)
    store(y, sum, alpha, beta);
}

// Each work-group processes one row block: as many whole rows as fit, or one part of a longer row.
// It loads the entries coalesced and stores the products in shared memory; then groups of lanes add
// up the rows. With fewer rows the groups are wider (CSR-Adaptive, Greathouse and Daga 2014). A
// whole wave adds up a row that is much longer than the other rows of its row block.
//
// Row block s holds the entries from block_entry[s] to block_entry[s + 1], at most WL_BLOCK * 4 (2
// of complex128), and at most WL_BLOCK rows; block_row[s] is its first row, or ~row for a part of a
// row. LINE: the elements of x are contiguous, and so are the elements of y. KEEP: the caches hold
// the matrix from one product to the next.
template <int LINE, int KEEP, class T, class I, class S>
WL_DEVICE void csr_adaptive(const item& it, const I* block_row, const I* block_entry,
                            const I* indptr, const I* indices, const S* data, mat<const T> x,
                            mat<T> y, T alpha, T beta, T* partial, i32* counters) {
  constexpr int each = sizeof(T) > 8 ? 2 : 4, capacity = WL_BLOCK * each, tail = 64;
  WL_SHARED(T, products, capacity);
  const int t = it.thread();
  const i64 s = it.block();
  const I first_row = block_row[s], next = block_row[s + 1], begin = block_entry[s];
  const int left = int(block_entry[s + 1] - begin) - t;
  indices += begin + t;
  data += begin + t;
  I columns[each];
  T values[each];
#pragma unroll
  for (int u = 0; u < each; ++u) {
    const bool mine = u * WL_BLOCK < left;
    columns[u] = mine ? entry<KEEP>(indices + u * WL_BLOCK) : I(0);
    values[u] = mine ? raised<T>(entry<KEEP>(data + u * WL_BLOCK)) : T(0);
  }
  const int rows = first_row < 0 ? 0 : int((next < 0 ? ~next : next) - first_row);
  int width = 1;
  while (2 * width * rows <= WL_BLOCK && width < WL_WARP)
    width *= 2;
  const int r = t / width, lane = t % width;
  const bool inside = r < rows;
  const int from = inside ? int(indptr[first_row + r] - begin) : 0,
            to = inside ? int(indptr[first_row + r + 1] - begin) : 0;
// All gathers are issued before the first product is stored: the compiler cannot know that the
// stores do not change x.
#pragma unroll
  for (int u = 0; u < each; ++u)
    values[u] = values[u] * (LINE ? x.data[columns[u]] : x(columns[u], 0));
  if (first_row < 0) {
    T sum{};
#pragma unroll
    for (int u = 0; u < each; ++u)
      if (u * WL_BLOCK < left)
        sum += values[u];
    join_parts(it, begin, I(capacity), indptr + ~first_row, sum, y(~first_row, 0), alpha, beta,
               partial, counters);
    return; // all work-items of the block return
  }
#pragma unroll
  for (int u = 0; u < each; ++u)
    if (u * WL_BLOCK < left)
      products[u * WL_BLOCK + t] = values[u];
  it.barrier();
  const bool waits = width < WL_WARP && to - from > tail * width;
  T sum{};
  if (!waits)
    for (int e = from + lane; e < to; e += width)
      sum += products[e];
  sum = sum_of_some_lanes(it, sum, width);
  if (const u64 waiting = ballot(waits))
    for (int leader = 0; leader < WL_WARP; leader += width)
      if (waiting >> leader & 1) {
        const int stop = shuffle(to, leader);
        T part{};
        for (int e = shuffle(from, leader) + lane_of(it); e < stop; e += WL_WARP)
          part += products[e];
        part = sum_of_lanes<WL_WARP>(it, part);
        if (lane_of(it) == leader)
          sum = part;
      }
  if (inside && lane == 0)
    store(LINE ? y.data[first_row + r] : y(first_row + r, 0), sum, alpha, beta);
}

} // namespace wl
