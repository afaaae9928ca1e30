// Rows of a matrix sorted by column; equal columns keep their order.
#pragma once
#include "cpu/arithmetic.hpp"
#include "cpu/ranks.hpp"

namespace wl {

// Columns and their original positions. Two such arrays alternate while a long row is merged.
template <class I>
struct placed_columns {
  I *columns, *order;
};

// The columns of a matrix and the number of its entries.
template <class I>
struct unsorted_columns {
  const I* columns;
  i64 entries;
};

// Sorts up to RANKED entries [begin, end) into `to`.
template <class I>
WL_DEVICE void sort_few(i64 begin, i64 end, unsorted_columns<I> of, placed_columns<I> to) {
  I copied[RANKED + RANKED_TOGETHER], places[RANKED + RANKED_TOGETHER];
  const i64 count = end - begin;
  const I* columns = of.columns + begin;
  if (end + RANKED_TOGETHER > of.entries) { // no padding behind the columns
    for (i64 e = 0; e < count; ++e)
      copied[e] = columns[e];
    columns = copied;
  }
  rank_in_turn(columns, count, places);
  for (i64 e = 0; e < count; ++e) {
    const i64 place = begin + places[e];
    to.columns[place] = columns[e], to.order[place] = static_cast<I>(begin + e);
  }
}

// Merges the sorted entries [begin, middle) and [middle, end).
template <class I>
WL_DEVICE void merge_sorted(i64 begin, i64 middle, i64 end, placed_columns<I> from,
                            placed_columns<I> to) {
  i64 a = begin, b = middle;
  for (i64 at = begin; at < end; ++at) {
    const bool left = b == end || (a < middle && from.columns[a] <= from.columns[b]);
    const i64 next = left ? a : b;
    to.columns[at] = from.columns[next], to.order[at] = from.order[next];
    a += left, b += !left;
  }
}

// Sorts the entries [begin, end) of a row into `to`; `spare` has the same size.
template <class I>
inline void sort_row(i64 begin, i64 end, unsorted_columns<I> of, placed_columns<I> to,
                     placed_columns<I> spare) {
  const auto up_to_end = [=](i64 e) { return e < end ? e : end; };
  for (i64 first = begin; first < end; first += RANKED)
    sort_few(first, up_to_end(first + RANKED), of, to);
  placed_columns<I> from = spare, into = to;
  for (i64 width = RANKED; width < end - begin; width *= 2) {
    const placed_columns<I> before = from;
    from = into, into = before;
    for (i64 first = begin; first < end; first += 2 * width)
      merge_sorted(first, up_to_end(first + width), up_to_end(first + 2 * width), from, into);
  }
  for (i64 e = begin; into.order != to.order && e < end; ++e)
    to.columns[e] = into.columns[e], to.order[e] = into.order[e];
}

// Sorts rows [begin, end); order[e] is the original position of entry e. `spare` holds all entries.
template <class T, class I>
inline void sort_rows(i64 begin, i64 end, const I* indptr, unsorted_columns<I> of, const T* data,
                      placed_columns<I> to, T* new_data, placed_columns<I> spare) {
  const I* const indices = of.columns;
  for (i64 row = begin; row < end; ++row) {
    const i64 first = indptr[row], last = indptr[row + 1];
    bool sorted = true;
    for (i64 e = first + 1; e < last; ++e)
      sorted &= indices[e - 1] <= indices[e];
    if (sorted)
      for (i64 e = first; e < last; ++e)
        to.columns[e] = indices[e], to.order[e] = static_cast<I>(e);
    else
      sort_row(first, last, of, to, spare);
    for (i64 e = first; e < last; ++e)
      new_data[e] = data[to.order[e]];
  }
}

} // namespace wl
