// The transpose of compressed rows: entries are counted by column, put into their columns in any
// order, and each column is then sorted. The result is that of a stable sort by columns.
#pragma once
#include "group_words.hpp"

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

// Sorts each column by where its entries were, and so by rows. They nearly are in this order.
template <class I>
WL_DEVICE void sort_places(const item& it, i64 columns, const I* target, I* rows, I* order) {
  for (i64 c = it.block() * WL_BLOCK + it.thread(); c < columns; c += it.blocks() * WL_BLOCK) {
    const I begin = target[c], end = target[c + 1];
    for (I e = begin + 1; e < end; ++e) {
      const I place = order[e], row = rows[e];
      I to = e;
      for (; to > begin && order[to - 1] > place; --to)
        order[to] = order[to - 1], rows[to] = rows[to - 1];
      order[to] = place, rows[to] = row;
    }
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
  const i32 mine = found < 0x7fffffff ? i32(found) : 0x7fffffff;
  for (i32 held = *longest; held < mine;) {
    const i32 seen = exchange_if(longest, held, mine);
    held = seen == held ? mine : seen;
  }
}

} // namespace wl
