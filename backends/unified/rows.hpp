// Operations on compressed rows, one row after the other. See wollemi.core.operations.rows.
#pragma once
#include "unified/compared_rows.hpp"
#include "unified/long_sums.hpp"
#include "unified/rounding.hpp"
#include "unified/search.hpp"

namespace wl {

struct steps_of_columns {
  i64 falls, repeats;
  WL_DEVICE steps_of_columns& operator+=(steps_of_columns o) {
    return falls += o.falls, repeats += o.repeats, *this;
  }
};

template <class I>
struct rows_examine {
  const I *begin, *end, *indices;
  i64 *falls, *repeats;
  WL_SUM(steps_of_columns);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    sum found{};
    for (I e = begin[i] + 1; e < end[i]; ++e) {
      found.falls += indices[e] < indices[e - 1];
      found.repeats += indices[e] == indices[e - 1];
    }
    return found;
  }
  WL_DEVICE void finish(i64, sum s) const { *falls = s.falls, *repeats = s.repeats; }
};

template <class I>
struct rows_falls {
  const I *begin, *end;
  i64* falls;
  WL_COUNT(falls);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const { return end[i] < begin[i]; }
};

// The number of entries of a row that have a new column: column_of(e) returns the new column of an
// entry, or -1.
template <class I, class Column>
WL_DEVICE I count_of_row(I begin, I end, Column column_of) {
  I count = 0;
  for (I e = begin; e < end; ++e)
    count += column_of(e) >= 0;
  return count;
}

// Stores these entries from `to` until `stop`. Every entry is stored, and the next entry overwrites
// an entry without a new column: so there is no branch to predict.
template <class T, class I, class Column>
WL_DEVICE void keep_of_row(I begin, const T* values, I to, I stop, I* new_indices, T* new_values,
                           Column column_of) {
  for (I e = begin; to < stop; ++e) {
    const I column = column_of(e);
    new_indices[to] = column;
    new_values[to] = values[e];
    to += column >= 0;
  }
}

// The column if it is in [low, high] relative to `origin`, else -1.
template <class I>
WL_DEVICE I column_within(I column, i64 origin, i64 low, i64 high) {
  return low <= i64(column) - origin && i64(column) - origin <= high ? column : I(-1);
}

template <class T, class I>
struct rows_count_nonzeros {
  const I *begin, *end;
  const T* values;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I count = 0;
    for (I e = begin[i]; e < end[i]; ++e)
      count += values[e] != T(0);
    return lengths[i] = count;
  }
};

template <class T, class I>
struct rows_total {
  const I *begin, *end;
  const T* values;
  T* y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    T found(0);
    for (I e = begin[i]; e < end[i]; ++e)
      found += values[e];
    return y[i] = found, sum{};
  }
};

template <bool LARGEST, class T, class I>
WL_DEVICE T extreme_of_row(const I* begin, const I* end, const T* values, i64 width, i64 i) {
  extreme<T, LARGEST> found{};
  for (I e = begin[i]; e < end[i]; ++e)
    found += extreme<T, LARGEST>{values[e], 1};
  if (end[i] - begin[i] < width)
    found += extreme<T, LARGEST>{T(0), 1};
  return found.some ? found.value : T(0);
}

template <class T, class I>
struct rows_largest {
  const I *begin, *end;
  const T* values;
  i64 width;
  T* y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return y[i] = extreme_of_row<true>(begin, end, values, width, i), sum{};
  }
};

template <class T, class I>
struct rows_smallest {
  const I *begin, *end;
  const T* values;
  i64 width;
  T* y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return y[i] = extreme_of_row<false>(begin, end, values, width, i), sum{};
  }
};

template <class T, class I>
struct rows_diagonal {
  const I *begin, *end, *indices;
  const T* values;
  i64 offset;
  T* d;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    T found(0);
    for (I e = begin[i]; e < end[i]; ++e)
      if (i64(indices[e]) == i + offset)
        found += values[e];
    return d[i] = found, sum{};
  }
};

template <class T, class I>
struct rows_set_diagonal {
  const I *begin, *end, *indices;
  const T* given;
  i64 offset;
  T* values;
  i64* stored;
  WL_COUNT(stored);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    i64 found = 0;
    for (I e = begin[i]; e < end[i]; ++e)
      if (i64(indices[e]) == i + offset) {
        values[e] = given[i];
        ++found;
      }
    return found;
  }
};

template <class T, class I>
struct rows_scale {
  const I *begin, *end, *indices;
  const T *values, *dense;
  i64 row_step, column_step;
  T* result;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    for (I e = begin[i]; e < end[i]; ++e)
      result[e] = values[e] * dense[i * row_step + i64(indices[e]) * column_step];
    return {};
  }
};

struct longest_row {
  i64 length; // 0 (zeroed memory) marks no row
  WL_DEVICE longest_row& operator+=(longest_row o) {
    return length = length < o.length ? o.length : length, *this;
  }
};

template <class I>
struct rows_longest {
  const I *begin, *end;
  i64* longest;
  WL_SUM(longest_row);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return {i64(end[i]) - i64(begin[i])};
  }
  WL_DEVICE void finish(i64, sum s) const { *longest = s.length; }
};

template <class I>
struct rows_number {
  const I *begin, *end;
  I* row;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    for (I e = begin[i]; e < end[i]; ++e)
      row[e] = I(i);
    return {};
  }
};

template <class I>
struct rows_lengths {
  const I *rows, *indptr;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return lengths[i] = indptr[rows[i] + 1] - indptr[rows[i]];
  }
};

template <class T, class I>
struct rows_take {
  const I *rows, *indptr, *indices;
  const T* values;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    for (I e = indptr[rows[i]]; e < indptr[rows[i] + 1]; ++e, ++to) {
      new_indices[to] = indices[e];
      new_values[to] = values[e];
    }
    return {};
  }
};

template <class T, class I>
struct rows_drop_zeros {
  const I *begin, *end, *indices;
  const T* values;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    keep_of_row(begin[i], values, target[i], target[i + 1], new_indices, new_values,
                [&](I e) { return values[e] != T(0) ? indices[e] : I(-1); });
    return {};
  }
};

template <class T, class I>
struct rows_count_products {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_begin, *other_end, *other_indices;
  const T* other_values;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return lengths[i] =
               count_of_both(begin[i], end[i], indices, values, other_begin[i], other_end[i],
                             other_indices, other_values, [&](T a, T b) { return a * b != T(0); });
  }
};

template <class T, class I>
struct rows_multiply {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_begin, *other_end, *other_indices;
  const T* other_values;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    keep_of_both(begin[i], end[i], indices, values, other_begin[i], other_end[i], other_indices,
                 other_values, target[i], target[i + 1], [&](I to, I column, T a, T b) {
                   new_indices[to] = column;
                   return (new_values[to] = a * b) != T(0);
                 });
    return {};
  }
};

template <class I>
struct rows_count_union {
  const I *begin, *end, *indices;
  const I *other_begin, *other_end, *other_indices;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I count = 0;
    for_either(begin[i], end[i], indices, other_begin[i], other_end[i], other_indices,
               [&](I, I, bool, I, bool) { ++count; });
    return lengths[i] = count;
  }
};

template <class T, class I>
struct rows_add {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_begin, *other_end, *other_indices;
  const T* other_values;
  T alpha, beta;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    for_either(begin[i], end[i], indices, other_begin[i], other_end[i], other_indices,
               [&](I column, I e, bool first, I f, bool second) {
                 new_indices[to] = column;
                 const T mine = first ? rounded_product(alpha, values[e]) : T(0);
                 const T other = second ? rounded_product(beta, other_values[f]) : T(0);
                 new_values[to++] = !second ? mine : first ? mine + other : other;
               });
    return {};
  }
};

template <class I>
struct rows_merge {
  const I *begin, *end, *indices;
  const I *other_begin, *other_end, *other_indices;
  const I* target;
  I *new_indices, *first, *second;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    for_either(begin[i], end[i], indices, other_begin[i], other_end[i], other_indices,
               [&](I column, I e, bool mine, I f, bool other) {
                 new_indices[to] = column;
                 first[to] = mine ? e : I(-1);
                 second[to++] = other ? f : I(-1);
               });
    return {};
  }
};

template <class I>
struct rows_count_picked {
  const I *begin, *end, *indices, *numbers;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return lengths[i] = count_of_row(begin[i], end[i], [&](I e) { return numbers[indices[e]]; });
  }
};

template <class T, class I>
struct rows_pick {
  const I *begin, *end, *indices, *numbers;
  const T* values;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    keep_of_row(begin[i], values, target[i], target[i + 1], new_indices, new_values,
                [&](I e) { return numbers[indices[e]]; });
    return {};
  }
};

template <class I>
struct rows_count_between {
  const I *begin, *end, *indices;
  i64 first, last;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return lengths[i] = count_of_row(begin[i], end[i], [&](I e) {
             return column_within(indices[e], 0, first, last - 1);
           });
  }
};

template <class T, class I>
struct rows_between {
  const I *begin, *end, *indices;
  i64 first, last;
  const T* values;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    keep_of_row(begin[i], values, target[i], target[i + 1], new_indices, new_values, [&](I e) {
      const I column = column_within(indices[e], 0, first, last - 1);
      return column < 0 ? column : I(column - first);
    });
    return {};
  }
};

template <class I>
struct rows_count_band {
  const I *begin, *end, *indices;
  i64 lower, upper;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return lengths[i] = count_of_row(
               begin[i], end[i], [&](I e) { return column_within(indices[e], i, lower, upper); });
  }
};

template <class T, class I>
struct rows_band {
  const I *begin, *end, *indices;
  i64 lower, upper;
  const T* values;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    keep_of_row(begin[i], values, target[i], target[i + 1], new_indices, new_values,
                [&](I e) { return column_within(indices[e], i, lower, upper); });
    return {};
  }
};

template <class T, class I>
struct rows_put {
  const I *begin, *end, *indices;
  const T* values;
  i64 offset;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    for (I e = begin[i]; e < end[i]; ++e, ++to) {
      new_indices[to] = I(indices[e] + offset);
      new_values[to] = values[e];
    }
    return {};
  }
};

template <class T, class I>
struct rows_at {
  const I *rows, *columns, *indptr, *indices;
  const T* values;
  T* y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const I end = indptr[rows[i] + 1];
    T found(0);
    for (I e = not_below_anywhere(indptr[rows[i]], end, indices, columns[i]);
         e < end && indices[e] == columns[i]; ++e)
      found += values[e];
    return y[i] = found, sum{};
  }
};

template <class T, class I>
struct rows_contract {
  const I *begin, *end, *first, *second;
  const T *x, *y;
  T* sums;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const I* const f = first + begin[i];
    const I* const s = second + begin[i];
    const auto sum_of = [&](i64 from, i64 to) {
      T found(0);
      for (i64 e = from; e < to; ++e)
        found += x[f[e]] * y[s[e]];
      return found;
    };
    return sums[i] = sum_of_terms<T>(i64(end[i] - begin[i]), 1, sum_of), sum{};
  }
};

template <class T, class I>
struct rows_kron {
  const I *begin, *end, *indices;
  const T* values;
  const I *other_begin, *other_end, *other_indices;
  const T* other_values;
  i64 other_rows, width;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 r, i64, const column_state&) const {
    const i64 i = r / other_rows, k = r % other_rows;
    I to = target[r];
    for (I e = begin[i]; e < end[i]; ++e)
      for (I f = other_begin[k]; f < other_end[k]; ++f, ++to) {
        new_indices[to] = I(indices[e] * width + other_indices[f]);
        new_values[to] = values[e] * other_values[f];
      }
    return {};
  }
};

template <class I>
struct rows_kron_pointers {
  const I *indptr, *other_indptr;
  i64 other_rows;
  I* new_indptr;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 r, i64, const column_state&) const {
    const i64 i = other_rows ? r / other_rows : 0, k = r - i * other_rows;
    const I begin = indptr[i], length = k ? indptr[i + 1] - begin : I(0);
    return new_indptr[r] = begin * other_indptr[other_rows] + length * other_indptr[k], sum{};
  }
};

template <class I>
struct rows_shift {
  const I* indptr;
  i64 by;
  I* new_indptr;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return new_indptr[i] = I(indptr[i] + by), sum{};
  }
};

// The blocks of `height` adjacent sorted rows, in the order of their columns.
template <class I>
struct blocks_of_rows {
  static constexpr int HELD = 8; // rows with a cursor; other rows are searched
  const I *indptr, *indices;
  i64 first, height, width;
  i64 from = 0; // the first column behind the last block
  I at[HELD];

  WL_DEVICE blocks_of_rows(const I* of_rows, const I* columns, i64 row, i64 h, i64 w)
      : indptr(of_rows), indices(columns), first(row), height(h), width(w) {
    for (int q = 0; q < HELD; ++q)
      at[q] = q < height ? indptr[first + q] : I(0);
  }

  // The first entry of row q that is in no block yet.
  WL_DEVICE I next(i64 q) const {
    if (q < HELD)
      return at[q];
    I low = indptr[first + q], high = indptr[first + q + 1];
    while (low < high) {
      const I middle = low + (high - low) / 2;
      if (i64(indices[middle]) < from)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  // The column of the next block, counted in blocks; -1 behind the last one.
  WL_DEVICE i64 column() const {
    i64 least = -1;
    for (i64 q = 0; q < height; ++q) {
      const I e = next(q);
      if (e < indptr[first + q + 1] && (least < 0 || i64(indices[e]) < least))
        least = indices[e];
    }
    return least < 0 ? least : least / width;
  }

  // Calls use(q, j, e) for each entry e of a block, where (q, j) is its position in the block, and
  // advances to the end of the block.
  template <class Use>
  WL_DEVICE void take(i64 block, const Use& use) {
    const i64 begin = block * width, end = begin + width;
    for (i64 q = 0; q < height; ++q) {
      I e = next(q);
      const I stop = indptr[first + q + 1];
      for (; e < stop && i64(indices[e]) < end; ++e)
        use(q, i64(indices[e]) - begin, e);
      if (q < HELD)
        at[q] = e;
    }
    from = end;
  }
};

template <class I>
struct rows_count_blocks {
  const I *indptr, *indices;
  i64 height, width;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    blocks_of_rows<I> blocks(indptr, indices, i * height, height, width);
    I count = 0;
    for (i64 block = blocks.column(); block >= 0; block = blocks.column(), ++count)
      blocks.take(block, [](i64, i64, I) {});
    return lengths[i] = count;
  }
};

template <class T, class I>
struct rows_fill_blocks {
  const I *lengths, *indptr, *indices;
  const T* values;
  i64 height, width;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    blocks_of_rows<I> blocks(indptr, indices, i * height, height, width);
    for (I k = 0; k < lengths[i]; ++k) {
      const i64 block = blocks.column(), to = i64(target[i]) + k;
      T* const numbers = new_values + to * height * width;
      for (i64 j = 0; j < height * width; ++j)
        numbers[j] = T(0);
      blocks.take(block, [&](i64 q, i64 j, I e) { numbers[q * width + j] = values[e]; });
      new_indices[to] = I(block);
    }
    return {};
  }
};

} // namespace wl
