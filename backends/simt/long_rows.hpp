// Products of sparse matrices: the rows that exceed the hash table of a group of lanes. One or
// several blocks compute a row. They first find its columns, as bits of a mask, in any order. They
// then accumulate its sums in shared memory, one range of the row after the other.
//
// The columns use a bit mask because a term then takes one atomic operation without probing, and
// because bits are sorted. The mask is cut into windows. A window begins at the first remaining
// column, so that the number of windows depends on the number of columns between entries and not on
// the width of the matrix.
//
// The sums use ranges of the row's entries, not windows of columns with one cell per column. Where
// rows are 8 % full, 92 of 100 cells of a window are empty. Every range or window begins with a
// search in every right row, so fewer of them are better. A range of 1408 float64 reads 12 times
// the terms for one search. The position of a column is bisected within one of 512 buckets, which
// takes two steps more than reading a mask.
//
// Terms, and not right rows, are distributed evenly: rows of the square of a graph have right rows
// of 9 entries and of thousands, and short right rows would leave most lanes idle. Two terms of a
// step may then have the same column. The work-item with the first of them adds its own term and
// then the later ones in their order. So every sum is in the order of the left row, with products
// rounded before they are added: the same bits as unified/spgemm.hpp.
#pragma once
#include "simt/bits.hpp"
#include "unified/coarsen_rows.hpp"
#include "simt/row_terms.hpp"

namespace wl {

constexpr int kBitsOfWord = 8 * sizeof(u32);
// Words of the mask of a window: 16 KiB for 131072 columns.
constexpr int kMaskWords = 4096;

// Bytes of the cells of a range. With the other arrays in shared memory a block has 30 KiB: seven
// blocks fit on a multiprocessor of Hopper, which has registers for six, and two on a compute unit
// of CDNA.
constexpr int kRangeBytes = 22 * 1024;
template <class T, class I>
constexpr int range_cells = kRangeBytes / int(sizeof(T) + sizeof(I) + sizeof(i32));

// The part of a row that a block processes: item `at` of count * shares.
struct row_share {
  i64 row, share;
};
template <class I>
WL_DEVICE row_share share_of(i64 at, i64 shares, const I* rows) {
  const i64 listed = at / shares;
  return {rows ? i64(rows[listed]) : listed, at % shares};
}

// Calls use(low, words) for windows of the columns of a row that are in a share of all columns. The
// mask then has `words` words for the columns from `low` on.
template <class I, class Use>
WL_DEVICE void for_windows(const item& it, i64 share, i64 shares, i64 columns, i64 width, I begin,
                           I end, const I* indices, const I* other_indptr, const I* other_indices,
                           Use&& use) {
  WL_SHARED(u32, mask, kMaskWords);
  WL_SHARED(i32, before, kEntries);
  WL_SHARED(I, start, kEntries);
  constexpr i64 most = i64(kMaskWords) * kBitsOfWord;
  const i64 step = width < most ? width : most;
  const i64 limit = columns * (share + 1) / shares;
  for (i64 low = columns * share / shares; low < limit;) {
    const i64 high = limit - low < step ? limit : low + step;
    const int words = int((high - low + kBitsOfWord - 1) / kBitsOfWord);
    for (int j = it.thread(); j < words; j += WL_BLOCK)
      mask[j] = 0;
    it.barrier();
    const i64 next =
        for_terms(it, term_list<I>{before, start}, begin, end, indices, other_indptr, other_indices,
                  low, high < columns ? high : kNoColumn, [&](bool active, i64, I f) {
                    if (active) {
                      const int at = int(i64(other_indices[f]) - low);
                      or_to_cell(mask + at / kBitsOfWord, u32(1) << at % kBitsOfWord);
                    }
                  });
    it.barrier();
    use(low, words, mask);
    // all have read the mask when the reduction ends
    low = sum_of_block(it, least_column{next}).value;
  }
}

// found[at] = the number of columns in each share of each row.
template <class I>
WL_DEVICE void count_long(const item& it, i64 count, i64 shares, i64 columns, i64 width,
                          const I* rows, const I* indptr, const I* indices, const I* other_indptr,
                          const I* other_indices, I* found) {
  for (i64 at = it.block(); at < count * shares; at += it.blocks()) {
    const row_share mine = share_of(at, shares, rows);
    i32 bits = 0;
    for_windows(it, mine.share, shares, columns, width, indptr[mine.row], indptr[mine.row + 1],
                indices, other_indptr, other_indices, [&](i64, int words, const u32* mask) {
                  for (int j = it.thread(); j < words; j += WL_BLOCK)
                    bits += ones_in(mask[j]);
                });
    const i64 all = sum_of_block(it, i64(bits));
    if (it.thread() == 0)
      found[at] = I(all);
  }
}

// lengths[row] = the number of columns of a row; found = the number of columns in the preceding
// shares of the row.
template <class I>
WL_DEVICE void join_shares(const item& it, i64 count, i64 shares, const I* rows, I* found,
                           I* lengths) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 at = it.block() * WL_BLOCK + it.thread(); at < count; at += step) {
    I before(0);
    for (i64 share = 0; share < shares; ++share) {
      const I mine = found[at * shares + share];
      found[at * shares + share] = before;
      before += mine;
    }
    lengths[rows ? i64(rows[at]) : at] = before;
  }
}

// The sorted columns of rows that have more than `most`: row i begins at target[i], and each share
// begins after the columns that `found` counts before it.
template <class I>
WL_DEVICE void place_long(const item& it, i64 count, i64 shares, i64 columns, i64 width,
                          const I* rows, const I* indptr, const I* indices, const I* other_indptr,
                          const I* other_indices, const I* found, const I* target, i64 most,
                          I* new_indices) {
  for (i64 at = it.block(); at < count * shares; at += it.blocks()) {
    const row_share mine = share_of(at, shares, rows);
    if (i64(target[mine.row + 1] - target[mine.row]) <= most)
      continue;
    I to = target[mine.row] + found[at];
    for_windows(it, mine.share, shares, columns, width, indptr[mine.row], indptr[mine.row + 1],
                indices, other_indptr, other_indices, [&](i64 low, int words, const u32* mask) {
                  for (int first = 0; first < words; first += WL_BLOCK) {
                    const int word = first + it.thread();
                    u32 bits = word < words ? mask[word] : 0;
                    const partial_sum placed = sums_before(it, ones_in(bits));
                    I place = to + I(placed.before);
                    for (; bits; bits &= bits - 1) // the lowest bit in each iteration
                      new_indices[place++] =
                          I(low + i64(word) * kBitsOfWord + ones_in(~bits & (bits - 1)));
                    to += I(placed.all);
                  }
                });
  }
}

// The sorted columns of a range of a row, in shared memory, with an index for finding a column.
template <class I>
struct range_columns {
  static constexpr int buckets = 512;
  const I* columns;
  short* first; // the first position of each bucket, and at the end the number of columns
  int shift;

  // All work-items call it together, after the columns are in shared memory.
  WL_DEVICE static range_columns made(const item& it, const I* columns, short* first, int width) {
    const i64 span = i64(columns[width - 1]) - i64(columns[0]);
    int shift = 0;
    while (span >> shift >= buckets)
      ++shift;
    for (int b = it.thread(); b <= buckets; b += WL_BLOCK)
      first[b] = short(not_below(I(0), I(width), columns, columns[0] + (i64(b) << shift)));
    return {columns, first, shift};
  }
  WL_DEVICE int place(I column) const {
    const int b = int((i64(column) - i64(columns[0])) >> shift);
    return int(not_below(I(first[b]), I(first[b + 1]), columns, i64(column)));
  }
};

// The sums of a range. Several terms of a step may have the same column: the first one adds the
// later ones.
template <class T>
struct range_sums {
  // Steps until the owners are reset. Until then the owners of later steps are smaller.
  static constexpr int turns = 64;
  T* sums;
  i32* owner; // of each sum: the smallest value of turn * WL_BLOCK + work-item
  int width;
  // Terms of a step that are not the first ones of their columns, in their order.
  i32* late_place;
  T* late_term;
  i32* of_wave;

  WL_DEVICE void forget(const item& it) const {
    for (int j = it.thread(); j < width; j += WL_BLOCK)
      owner[j] = turns * WL_BLOCK;
    it.barrier();
  }
  // Adds a term at a position, or none if the position is -1. All work-items call it together;
  // their terms are in their order. `turn` is the number of steps that remain.
  WL_DEVICE void add(const item& it, int& turn, int place, T term) const {
    constexpr int waves = WL_BLOCK / WL_WARP;
    if (turn == 0) {
      forget(it);
      turn = turns;
    }
    const i32 mine = --turn * WL_BLOCK + it.thread();
    if (place >= 0)
      least_in_cell(owner + place, mine);
    it.barrier();
    const bool is_first = place >= 0 && owner[place] == mine;
    const bool is_late = place >= 0 && !is_first;
    const u64 votes = ballot(is_late);
    if (lane_of(it) == 0)
      of_wave[wave_of(it)] = ones_in(votes);
    it.barrier();
    int all = 0, before = ones_in(votes & ((u64(1) << lane_of(it)) - 1));
    for (int w = 0; w < waves; ++w) {
      before += w < wave_of(it) ? of_wave[w] : 0;
      all += of_wave[w];
    }
    if (all > 0) {
      if (is_late) {
        late_place[before] = place;
        late_term[before] = term;
      }
      it.barrier();
    }
    if (is_first) {
      T sum = sums[place] + term;
      for (int j = 0; j < all; ++j)
        if (late_place[j] == place)
          sum += late_term[j];
      sums[place] = sum;
    }
  }
};

// The values of long rows of a product with a known pattern: row i has the sorted columns
// `places[e]` for target[i] <= e < target[i + 1]. The entries of a row are cut into ranges of at
// most `most`, which are distributed over its shares.
template <class T, class I>
WL_DEVICE void refill_long(const item& it, i64 count, i64 shares, i64 most, const I* rows,
                           const I* indptr, const I* indices, const T* values,
                           const I* other_indptr, const I* other_indices, const T* other_values,
                           const I* target, const I* places, T* new_values) {
  constexpr int cells = range_cells<T, I>;
  static_assert(cells <= 0x7fff, "places in a range are short");
  WL_SHARED(T, sums, cells);
  WL_SHARED(T, late_term, WL_BLOCK);
  WL_SHARED(I, columns, cells);
  WL_SHARED(I, start, kEntries);
  WL_SHARED(i32, owner, cells);
  WL_SHARED(i32, before, kEntries);
  WL_SHARED(i32, late_place, WL_BLOCK);
  WL_SHARED(i32, of_wave, WL_BLOCK / WL_WARP);
  WL_SHARED(short, first, range_columns<I>::buckets + 1);
  const i64 step = most < cells ? most : cells;
  for (i64 at = it.block(); at < count * shares; at += it.blocks()) {
    const row_share mine = share_of(at, shares, rows);
    const I begin = indptr[mine.row], end = indptr[mine.row + 1];
    const i64 row_begin = target[mine.row], length = i64(target[mine.row + 1]) - row_begin;
    const i64 parts = (length + step - 1) / step;
    for (i64 part = mine.share; part < parts; part += shares) {
      const i64 range = row_begin + length * part / parts;
      const i64 next_range = row_begin + length * (part + 1) / parts;
      const int width = int(next_range - range);
      it.barrier(); // all lanes have left the previous range
      for (int j = it.thread(); j < width; j += WL_BLOCK) {
        columns[j] = places[range + j];
        sums[j] = T(0);
      }
      const range_sums<T> added{sums, owner, width, late_place, late_term, of_wave};
      added.forget(it);
      const auto known = range_columns<I>::made(it, columns, first, width);
      int turn = range_sums<T>::turns;
      for_terms(it, term_list<I>{before, start}, begin, end, indices, other_indptr, other_indices,
                part > 0 ? i64(columns[0]) : 0,
                part + 1 < parts ? i64(places[next_range]) : kNoColumn,
                [&](bool active, i64 e, I f) {
                  T term(0);
                  int place = -1;
                  if (active) {
                    term = rounded_product(values[e], other_values[f]);
                    place = known.place(other_indices[f]);
                  }
                  added.add(it, turn, place, term);
                });
      it.barrier();
      for (int j = it.thread(); j < width; j += WL_BLOCK)
        new_values[range + j] = sums[j];
    }
  }
}

} // namespace wl
