// The transpose of compressed rows, and compressed rows of coordinates. Entries are counted by the
// row of the new matrix and moved into their rows in any order; each row is then sorted. The result
// is the result of a stable sort.
#pragma once
#include "simt/shared_atomics.hpp"

namespace wl {

// counts[c] += the number of entries of column c.
template <class I>
WL_DEVICE void count_columns(const item& it, i64 entries, const I* indices, i32* counts) {
  for (i64 e = it.block() * WL_BLOCK + it.thread(); e < entries; e += it.blocks() * WL_BLOCK)
    fetch_add(counts + indices[e], 1);
}

// As above, and places[e] = the number of entries of the column that were counted before entry e.
template <class I>
WL_DEVICE void count_with_places(const item& it, i64 entries, const I* indices, i32* counts,
                                 i32* places) {
  for (i64 e = it.block() * WL_BLOCK + it.thread(); e < entries; e += it.blocks() * WL_BLOCK)
    places[e] = fetch_add(counts + indices[e], 1);
}

// The two values of an entry of a column: its row (its column for coordinates) and its original
// position. Both are written at once, because the time is proportional to the number of scattered
// writes.
template <class I>
struct alignas(2 * sizeof(I)) placed {
  I row, entry;
};

// Moves each entry to its position in its column.
template <class I>
WL_DEVICE void place_entries(const item& it, i64 m, const I* indptr, const I* indices,
                             const I* target, const i32* places, I* entries) {
  constexpr int lanes = 4; // rows are short, and writes are scattered anyway
  auto* const to = reinterpret_cast<placed<I>*>(entries);
  const i64 step = it.blocks() * WL_BLOCK / lanes;
  for (i64 i = (it.block() * WL_BLOCK + it.thread()) / lanes; i < m; i += step)
    for (I e = indptr[i] + I(it.thread() % lanes); e < indptr[i + 1]; e += I(lanes))
      to[target[indices[e]] + I(places[e])] = placed<I>{I(i), e};
}

// The same for coordinates, by rows.
template <class I>
WL_DEVICE void place_coordinates(const item& it, i64 count, const I* rows, const I* columns,
                                 const I* target, const i32* places, I* entries) {
  auto* const to = reinterpret_cast<placed<I>*>(entries);
  for (i64 e = it.block() * WL_BLOCK + it.thread(); e < count; e += it.blocks() * WL_BLOCK)
    to[target[rows[e]] + I(places[e])] = placed<I>{columns[e], I(e)};
}

// The largest number of entries of a column that a group of LANES lanes sorts.
template <int LANES>
constexpr int sorted_cells = 16 * LANES;

// Sorts each column by original position, and so by rows. LANES lanes share a column: for each of
// its entries a lane counts the entries that precede it.
template <int LANES, class I>
WL_DEVICE void sort_places(const item& it, i64 columns, const I* target, const I* entries, I* rows,
                           I* order) {
  constexpr int cells = sorted_cells<LANES>;
  using group = lane_group<LANES>;
  WL_SHARED(I, all_places, group::per_block * cells);
  WL_SHARED(I, all_rows, group::per_block * cells);
  auto* const given = reinterpret_cast<const placed<I>*>(entries);
  const int lane = group::lane(it);
  I* const places = all_places + group::number(it) * cells;
  I* const row_of = all_rows + group::number(it) * cells;
  for (i64 base = it.block() * group::per_block; base < columns;
       base += it.blocks() * group::per_block) {
    const i64 c = base + group::number(it);
    const I begin = c < columns ? target[c] : I(0);
    const int length = c < columns ? int(target[c + 1] - begin) : 0;
    for (int j = lane; j < length; j += LANES) {
      const placed<I> one = given[begin + I(j)];
      places[j] = one.entry;
      row_of[j] = one.row;
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

// order = the positions of the entries of each row, by column, then by position; indices are stored
// in this order. LANES lanes share a row: for each of its entries a lane counts the entries that
// precede it.
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

// Raises longest[0] to the length of the longest row, at most to the largest i32.
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
