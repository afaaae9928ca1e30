// The transpose of compressed rows, and compressed rows of coordinates: entries are counted by the
// row of the new matrix, put into their rows in any order, and each row is then sorted. The result
// is that of a stable sort.
#pragma once
#include "shared_atomics.hpp"

namespace wl {

// counts[c] += how many entries column c has.
template <class I>
WL_DEVICE void count_columns(const item& it, i64 entries, const I* indices, i32* counts) {
  for (i64 e = it.block() * WL_BLOCK + it.thread(); e < entries; e += it.blocks() * WL_BLOCK)
    fetch_add(counts + indices[e], 1);
}

// Puts each entry into its column, of which taken[c] places are taken: the row and where it was.
template <class I>
WL_DEVICE void place_entries(const item& it, i64 m, const I* indptr, const I* indices,
                             const I* target, i32* taken, I* rows, I* order) {
  constexpr int lanes = 4; // rows are short, and lanes write wherever their columns are
  const i64 step = it.blocks() * WL_BLOCK / lanes;
  for (i64 i = (it.block() * WL_BLOCK + it.thread()) / lanes; i < m; i += step)
    for (I e = indptr[i] + I(it.thread() % lanes); e < indptr[i + 1]; e += I(lanes)) {
      const I to = target[indices[e]] + I(fetch_add(taken + indices[e], 1));
      rows[to] = I(i);
      order[to] = e;
    }
}

// Puts each entry into its row, of which taken[r] places are taken: the column and where it was.
template <class I>
WL_DEVICE void place_coordinates(const item& it, i64 entries, const I* rows, const I* columns,
                                 const I* target, i32* taken, I* indices, I* order) {
  for (i64 e = it.block() * WL_BLOCK + it.thread(); e < entries; e += it.blocks() * WL_BLOCK) {
    const I to = target[rows[e]] + I(fetch_add(taken + rows[e], 1));
    indices[to] = columns[e];
    order[to] = I(e);
  }
}

// Entries of a column that a group of LANES sorts, at most.
template <int LANES>
constexpr int sorted_cells = 16 * LANES;

// Sorts each column by where its entries were, and so by rows. LANES lanes have a column: each
// counts, for its entries, how many come before.
template <int LANES, class I>
WL_DEVICE void sort_places(const item& it, i64 columns, const I* target, I* rows, I* order) {
  constexpr int cells = sorted_cells<LANES>;
  using group = lane_group<LANES>;
  WL_SHARED(I, all_places, group::per_block * cells);
  WL_SHARED(I, all_rows, group::per_block * cells);
  const int lane = group::lane(it);
  I* const places = all_places + group::number(it) * cells;
  I* const row_of = all_rows + group::number(it) * cells;
  for (i64 base = it.block() * group::per_block; base < columns;
       base += it.blocks() * group::per_block) {
    const i64 c = base + group::number(it);
    const I begin = c < columns ? target[c] : I(0);
    const int length = c < columns ? int(target[c + 1] - begin) : 0;
    for (int j = lane; j < length; j += LANES) {
      places[j] = order[begin + I(j)];
      row_of[j] = rows[begin + I(j)];
    }
    group::barrier(it);
    for (int j = lane; j < length; j += LANES) {
      const I place = places[j];
      int rank = 0;
      for (int other = 0; other < length; ++other)
        rank += places[other] < place;
      order[begin + I(rank)] = place;
      rows[begin + I(rank)] = row_of[j];
    }
    group::barrier(it);
  }
}

// order = where the entries of each row are, by column, then by place; indices in this order.
// LANES lanes have a row: each counts, for its entries, how many come before.
template <int LANES, class I>
WL_DEVICE void sort_columns(const item& it, i64 m, const I* indptr, const I* indices, I* sorted,
                            I* order) {
  constexpr int cells = sorted_cells<LANES>;
  using group = lane_group<LANES>;
  WL_SHARED(I, all_columns, group::per_block * cells);
  const int lane = group::lane(it);
  I* const columns = all_columns + group::number(it) * cells;
  for (i64 base = it.block() * group::per_block; base < m; base += it.blocks() * group::per_block) {
    const i64 i = base + group::number(it);
    const I begin = i < m ? indptr[i] : I(0);
    const int length = i < m ? int(indptr[i + 1] - begin) : 0;
    for (int j = lane; j < length; j += LANES)
      columns[j] = indices[begin + I(j)];
    group::barrier(it);
    for (int j = lane; j < length; j += LANES) {
      const I column = columns[j];
      int rank = 0;
      for (int other = 0; other < length; ++other)
        rank += columns[other] < column || (columns[other] == column && other < j);
      sorted[begin + I(rank)] = column;
      order[begin + I(rank)] = begin + I(j);
    }
    group::barrier(it);
  }
}

// longest[0] = at least that of all rows.
template <class I>
WL_DEVICE void longest_row(const item& it, i64 m, const I* indptr, i32* longest) {
  i64 found = 0;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += it.blocks() * WL_BLOCK) {
    const i64 length = i64(indptr[i + 1] - indptr[i]);
    found = length > found ? length : found;
  }
  raise_by_block(it, longest, found < 0x7fffffff ? i32(found) : 0x7fffffff);
}

} // namespace wl
