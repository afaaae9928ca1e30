// Products of sparse matrices by rows, in shared memory. A group of lanes computes one row of the
// product: a hash table finds its columns, which are then sorted, and sums are accumulated per
// column.
//
// `spread` lanes read a row of the right matrix coalesced, and LANES / spread of its rows are read
// at once. Every sum is in the order of the left row, with products rounded before they are added:
// the same bits as unified/spgemm.hpp. `spread` is LANES, or not less than the length of the
// longest row of the right matrix.
#pragma once
#include "simt/bits.hpp"
#include "unified/coarsen_rows.hpp"
#include "simt/shared_atomics.hpp"
#include "unified/spgemm.hpp"

namespace wl {

// Cells of a group's table, and the largest number of columns of a row.
template <int LANES>
constexpr int cells_of = 8 * LANES;

// The number of lists of rows: one for each group size, one for long rows, and one for rows that
// several blocks share.
constexpr int kSizes = 5;

// The number of entries of a left row up to which one lane counts its products.
constexpr int kCounted = 1024;

template <class A, class B, bool FIRST = (sizeof(A) >= sizeof(B))>
struct larger_of {
  using type = A;
};
template <class A, class B>
struct larger_of<A, B, false> {
  using type = B;
};

// Inserts a column into a table in which -1 marks free cells; there must be a free cell. Returns
// whether the column is new.
template <int CELLS, class I>
WL_DEVICE bool put_column(I* table, I column) {
  for (u32 at = (u32(column) * 0x9E3779B1u) >> 12;; ++at) {
    I* const cell = table + (at & u32(CELLS - 1));
    I held = *cell;
    if (held == I(-1)) {
      held = exchange_if(cell, I(-1), column);
      if (held == I(-1))
        return true;
    }
    if (held == column)
      return false;
  }
}

// Calls use(column) for all columns that a left row produces, each lane for its own, in any order.
template <int LANES, class I, class Use>
WL_DEVICE void for_named(int lane, int spread, I begin, I end, const I* indices,
                         const I* other_indptr, const I* other_indices, Use&& use) {
  for (I e = begin + I(lane / spread); e < end; e += I(LANES / spread)) {
    const I row = indices[e], beyond = other_indptr[row + 1];
    for (I f = other_indptr[row] + I(lane % spread); f < beyond; f += I(spread))
      use(other_indices[f]);
  }
}

// Assigns rows to groups by an upper bound of their columns: up to `few`, `many` and `most` columns
// to groups of lanes, more to a block, and more than `giant` to several blocks. Each kind has a
// list of rows; the lists are allocated one after the other, and `counts` holds their lengths. A
// row has at most one column per product; the number of products goes to `terms`. BY_LENGTH: the
// columns are already counted; a row of few columns with more than `few_terms` or `many_terms`
// products then gets more lanes. The products of a long left row are not counted: its right rows
// are assumed to have `mean` entries.
template <int BY_LENGTH, class I>
WL_DEVICE void deal_rows(const item& it, i64 m, const I* indptr, const I* indices,
                         const I* other_indptr, i64 few, i64 many, i64 most, i64 giant,
                         i64 few_terms, i64 many_terms, i64 mean, I* terms, I* rows, i32* counts) {
  constexpr i64 largest = 0x7fffffff;
  constexpr int waves = WL_BLOCK / WL_WARP;
  WL_SHARED(i32, of_wave, waves * kSizes);
  WL_SHARED(i32, first, kSizes);
  const int wave = wave_of(it), lane = lane_of(it);
  for (i64 base = it.block() * WL_BLOCK; base < m; base += it.blocks() * WL_BLOCK) {
    const i64 row = base + it.thread();
    i64 size = 0, products = 0;
    if (row < m) {
      size = i64(indptr[row + 1] - indptr[row]);
      if constexpr (!BY_LENGTH) {
        const I begin = indptr[row], end = indptr[row + 1];
        const bool is_long = size > kCounted;
        size = is_long ? size * mean : 0;
        if (is_long && size <= most)
          size = most + 1;
        for (I e = begin; !is_long && e < end; ++e)
          size += i64(other_indptr[indices[e] + 1] - other_indptr[indices[e]]);
        terms[row] = I(size < largest ? size : largest);
      } else {
        products = i64(terms[row]);
      }
    }
    const int mine = row >= m                                 ? -1
                     : size <= few && products <= few_terms   ? 0
                     : size <= many && products <= many_terms ? 1
                     : size <= most                           ? 2
                     : size <= giant                          ? 3
                                                              : 4;
    int before = 0;
    for (int s = 0; s < kSizes; ++s) {
      const u64 votes = ballot(mine == s);
      if (mine == s)
        before = ones_in(votes & ((u64(1) << lane) - 1));
      if (lane == 0)
        of_wave[wave * kSizes + s] = ones_in(votes);
    }
    it.barrier();
    if (it.thread() < kSizes) {
      i32 all = 0;
      for (int w = 0; w < waves; ++w)
        all += of_wave[w * kSizes + it.thread()];
      first[it.thread()] = all > 0 ? fetch_add(counts + it.thread(), all) : 0;
    }
    it.barrier();
    if (mine >= 0) {
      for (int w = 0; w < wave; ++w)
        before += of_wave[w * kSizes + mine];
      rows[i64(mine) * m + first[mine] + before] = I(row);
    }
    it.barrier();
  }
}

// lengths[row] = the number of columns of a row of the product, at most the number of cells of the
// table.
template <int LANES, class I>
WL_DEVICE void count_product(const item& it, i64 count, i64 spread, const I* rows, const I* indptr,
                             const I* indices, const I* other_indptr, const I* other_indices,
                             I* lengths) {
  using group = lane_group<LANES>;
  constexpr int cells = cells_of<LANES>;
  WL_SHARED(I, tables, group::per_block * cells);
  const int lane = group::lane(it);
  I* const table = tables + group::number(it) * cells;
  for (i64 base = it.block() * group::per_block; base < count;
       base += it.blocks() * group::per_block) {
    const i64 at = base + group::number(it);
    const bool inside = at < count;
    const i64 row = inside ? (rows ? i64(rows[at]) : at) : 0;
    for (int j = lane; j < cells; j += LANES)
      table[j] = I(-1);
    group::barrier(it);
    i32 found = 0;
    if (inside)
      for_named<LANES>(lane, int(spread), indptr[row], indptr[row + 1], indices, other_indptr,
                       other_indices, [&](I column) { found += put_column<cells>(table, column); });
    found = group::sum(it, found);
    if (inside && lane == 0)
      lengths[row] = I(found);
    group::barrier(it);
  }
}

// Accumulates the terms of a row at the positions of their sorted columns.
template <int LANES, class T, class I>
WL_DEVICE void add_terms(const item& it, int spread, I begin, I end, const I* indices,
                         const T* values, const I* other_indptr, const I* other_indices,
                         const T* other_values, const I* columns, int length, T* sums) {
  using group = lane_group<LANES>;
  const int lane = group::lane(it), parts = LANES / spread, part = lane / spread;
  for (I base = begin; group::some(base < end); base += I(parts)) {
    const I e = base + I(part);
    I f(lane % spread), beyond(0);
    T factor(0);
    if (e < end) {
      const I row = indices[e];
      factor = values[e];
      f += other_indptr[row], beyond = other_indptr[row + 1];
    }
    // Where several right rows are read at once, each one fits one read.
    do {
      int at = -1;
      T term(0);
      if (f < beyond) {
        term = rounded_product(factor, other_values[f]);
        at = int(not_below(I(0), I(length), columns, i64(other_indices[f])));
      }
      // One right row after the other: two right rows may have the same column.
      for (int turn = 0; turn < parts; ++turn) {
        if (turn == part && at >= 0)
          sums[at] += term;
        group::barrier(it);
      }
      f += I(spread);
    } while (parts == 1 && group::some(f - I(lane) < beyond));
  }
}

// The rows of the product, sorted. The lengths of the rows are known: row i begins at target[i].
template <int LANES, class T, class I>
WL_DEVICE void fill_product(const item& it, i64 count, i64 spread, const I* rows, const I* indptr,
                            const I* indices, const T* values, const I* other_indptr,
                            const I* other_indices, const T* other_values, const I* target,
                            I* new_indices, T* new_values) {
  using group = lane_group<LANES>;
  using wide = typename larger_of<T, I>::type;
  constexpr int cells = cells_of<LANES>;
  WL_SHARED(I, tables, group::per_block * cells);
  WL_SHARED(wide, others, group::per_block * cells);
  WL_SHARED(i32, lengths, group::per_block);
  const int lane = group::lane(it);
  I* const table = tables + group::number(it) * cells;
  // First the columns in the order in which they were found, then the sums.
  I* const list = reinterpret_cast<I*>(others + group::number(it) * cells);
  T* const sums = reinterpret_cast<T*>(others + group::number(it) * cells);
  i32* const listed = lengths + group::number(it);
  for (i64 base = it.block() * group::per_block; base < count;
       base += it.blocks() * group::per_block) {
    const i64 at = base + group::number(it);
    const bool inside = at < count;
    const i64 row = inside ? (rows ? i64(rows[at]) : at) : 0;
    const I begin = inside ? indptr[row] : I(0), end = inside ? indptr[row + 1] : I(0);
    for (int j = lane; j < cells; j += LANES)
      table[j] = I(-1);
    if (lane == 0)
      *listed = 0;
    group::barrier(it);
    for_named<LANES>(lane, int(spread), begin, end, indices, other_indptr, other_indices,
                     [&](I column) {
                       if (put_column<cells>(table, column))
                         list[add_to_cell(listed, 1)] = column;
                     });
    group::barrier(it);
    const int length = int(*listed);
    const I first = inside ? target[row] : I(0);
    for (int j = lane; j < length; j += LANES) {
      const I column = list[j];
      int rank = 0;
      for (int other = 0; other < length; ++other)
        rank += list[other] < column;
      table[rank] = column;
      new_indices[first + I(rank)] = column;
    }
    group::barrier(it);
    for (int j = lane; j < length; j += LANES)
      sums[j] = T(0);
    group::barrier(it);
    add_terms<LANES>(it, int(spread), begin, end, indices, values, other_indptr, other_indices,
                     other_values, table, length, sums);
    for (int j = lane; j < length; j += LANES)
      new_values[first + I(j)] = sums[j];
    group::barrier(it);
  }
}

// The values of a product with a known pattern: row i has the sorted columns `places[e]` for
// target[i] <= e < target[i + 1].
template <int LANES, class T, class I>
WL_DEVICE void refill_product(const item& it, i64 count, i64 spread, const I* rows, const I* indptr,
                              const I* indices, const T* values, const I* other_indptr,
                              const I* other_indices, const T* other_values, const I* target,
                              const I* places, T* new_values) {
  using group = lane_group<LANES>;
  constexpr int cells = cells_of<LANES>;
  WL_SHARED(I, tables, group::per_block * cells);
  WL_SHARED(T, others, group::per_block * cells);
  const int lane = group::lane(it);
  I* const table = tables + group::number(it) * cells;
  T* const sums = others + group::number(it) * cells;
  for (i64 base = it.block() * group::per_block; base < count;
       base += it.blocks() * group::per_block) {
    const i64 at = base + group::number(it);
    const bool inside = at < count;
    const i64 row = inside ? (rows ? i64(rows[at]) : at) : 0;
    const I begin = inside ? indptr[row] : I(0), end = inside ? indptr[row + 1] : I(0);
    const I first = inside ? target[row] : I(0);
    const int length = inside ? int(target[row + 1] - first) : 0;
    for (int j = lane; j < length; j += LANES) {
      table[j] = places[first + I(j)];
      sums[j] = T(0);
    }
    group::barrier(it);
    add_terms<LANES>(it, int(spread), begin, end, indices, values, other_indptr, other_indices,
                     other_values, table, length, sums);
    for (int j = lane; j < length; j += LANES)
      new_values[first + I(j)] = sums[j];
    group::barrier(it);
  }
}

} // namespace wl
