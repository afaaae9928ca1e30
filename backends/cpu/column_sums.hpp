// Rows of a new matrix as sums of terms: products of sparse matrices, sums of sparse matrices, and
// sums of duplicate entries.
//
// Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted transposition",
// ACM TOMS 4 (1978). A row is accumulated in a dense array with one element per column.
//
// `Terms` has work(row), an upper bound of the number of terms of the row, and visit(row, term),
// which calls term(column, value) for each term. The order of visit is the order of the additions.
#pragma once
#include "cpu/arithmetic.hpp"
#include "cpu/ranks.hpp"
#include "unified/rounding.hpp"

namespace wl {

// -0, the neutral element of addition: the sum of no terms.
template <class R>
WL_DEVICE constexpr R no_terms(R) {
  return R(-0.0);
}
template <class R>
WL_DEVICE constexpr complex<R> no_terms(complex<R>) {
  return {R(-0.0), R(-0.0)};
}

// Whether a sum is -0, bit for bit.
WL_DEVICE bool has_no_terms(float sum) {
  unsigned bits;
  __builtin_memcpy(&bits, &sum, sizeof bits);
  return bits == 1u << 31;
}
WL_DEVICE bool has_no_terms(double sum) {
  unsigned long long bits;
  __builtin_memcpy(&bits, &sum, sizeof bits);
  return bits == 1ull << 63;
}
template <class R>
WL_DEVICE bool has_no_terms(complex<R> sum) {
  return int(has_no_terms(sum.re)) & int(has_no_terms(sum.im));
}

// Accumulates rows, one after the other, in a dense array with one element per column.
//
// Sums begin at -0, and a sum of -0 marks a column without terms, so that no branch depends on
// whether a column has occurred. For a small number of columns, the position of each column in the
// row is counted. The columns of longer rows are bits in three levels, which are read in increasing
// order. If there are far more columns than terms, writing -0 to all sums would take longer than
// the rows: then the bits mark the columns that have occurred.
template <class T, class I>
class column_sums {
public:
  using word = unsigned long long;

  // Words of bits for a number of columns.
  static constexpr i64 words(i64 columns) { return first(columns) + top(columns); }

  // Elements needed for the columns of a row of at most `longest` terms.
  static constexpr i64 room(i64 longest) { return longest + 1 + RANKED_TOGETHER; }

  // The memory has `columns` sums, words(columns) bits and, if all sums begin at -0, space for
  // found columns. Only clear() initializes it.
  WL_DEVICE column_sums(i64 columns, bool all_begin, T* sums, word* bits, I* found)
      : columns_(columns), all_begin_(all_begin), sums_(sums), words_(bits),
        groups_(bits + columns / 64 + 1), top_(bits + first(columns)), found_(found) {}

  WL_DEVICE void clear() const {
    for (i64 column = 0; all_begin_ && column < columns_; ++column)
      sums_[column] = no_terms(T());
    for (i64 at = 0; at < words(columns_); ++at)
      words_[at] = 0;
  }

  // Calls use(place, column, sum) for the columns of a row, where `place` is the number of smaller
  // columns, and returns the number of columns.
  template <class Terms, class Use>
  WL_DEVICE i64 add_up(const Terms& terms, i64 row, Use&& use) const {
    if (!all_begin_) {
      terms.visit(row, [&](i64 column, T value) { add(column, value); });
      return take(use);
    }
    T* const sums = sums_;
    I* const found = found_;
    i64 count = 0;
    bool twice = false; // -0 was added to a sum without terms: the column may be found again
    terms.visit(row, [&](i64 column, T value) {
      const T before = sums[column], after = before + value;
      found[count] = static_cast<I>(column);
      count += has_no_terms(before);
      twice |= has_no_terms(after);
      sums[column] = after;
    });
    if (twice || count > RANKED) {
      for (i64 at = 0; at < count; ++at)
        insert(found[at]);
      return take(use);
    }
    I places[RANKED + RANKED_TOGETHER];
    rank(found, count, places);
    for (i64 at = 0; at < count; ++at) {
      const I column = found[at];
      use(i64(places[at]), column, sums[column]);
      sums[column] = no_terms(T());
    }
    return count;
  }

private:
  i64 columns_;
  bool all_begin_;
  T* sums_;
  word *words_, *groups_, *top_;
  I* found_;

  static constexpr i64 first(i64 columns) { return columns / 64 + 1 + columns / 4096 + 1; }
  static constexpr i64 top(i64 columns) { return columns / 262144 + 1; }

  WL_DEVICE void add(i64 column, T value) const {
    if (words_[column >> 6] >> (column & 63) & 1) {
      sums_[column] += value;
      return;
    }
    insert(column);
    sums_[column] = value;
  }

  WL_DEVICE void insert(i64 column) const {
    word& bits = words_[column >> 6];
    if (bits == 0) {
      groups_[column >> 12] |= word(1) << (column >> 6 & 63);
      top_[column >> 18] |= word(1) << (column >> 12 & 63);
    }
    bits |= word(1) << (column & 63);
  }

  // Calls use(place, column, sum) in increasing order, and empties the set.
  template <class Use>
  WL_DEVICE i64 take(Use&& use) const {
    i64 place = 0;
    T* const sums = sums_;
    for (i64 at = 0; at < top(columns_); ++at)
      for_bits(top_[at], at, [&](i64 group) {
        for_bits(groups_[group], group, [&](i64 of_word) {
          for_bits(words_[of_word], of_word, [&](i64 column) {
            use(place++, static_cast<I>(column), sums[column]);
            sums[column] = no_terms(T());
          });
        });
      });
    return place;
  }

  template <class Use>
  WL_DEVICE static void for_bits(word& bits, i64 place, Use&& use) {
    word left = bits;
    bits = 0;
    for (; left != 0; left &= left - 1)
      use(place * 64 + __builtin_ctzll(left));
  }
};

// A sum as a matrix stores it. A sum that begins at 0, as in the reference, is never -0.
template <class T>
WL_DEVICE T from_zero(T sum) {
  return sum + T(0);
}

// Writes how many terms rows [begin, end) have, and returns the largest number.
template <class Terms>
inline i64 count_terms(const Terms& terms, i64 begin, i64 end, i64* counts) {
  i64 longest = 0;
  for (i64 row = begin; row < end; ++row) {
    const i64 work = terms.work(row);
    longest = work > longest ? work : longest;
    counts[row] = work;
  }
  return longest;
}

// Adds up rows [begin, end), writes how many columns each has, and returns how many all of them
// have. The rows are written one after the other, unless `columns` is null.
template <class T, class I, class Terms>
inline i64 make_rows(const Terms& of, const column_sums<T, I>& sums, i64 begin, i64 end, I* lengths,
                     I* columns, T* values) {
  const bool stored = columns != nullptr;
  const Terms terms = of;
  i64 made = 0;
  for (i64 row = begin; row < end; ++row) {
    const i64 length = sums.add_up(terms, row, [=](i64 place, I column, T sum) {
      if (stored)
        columns[made + place] = column, values[made + place] = from_zero(sum);
    });
    lengths[row] = static_cast<I>(length);
    made += length;
  }
  return made;
}

// Fills rows [begin, end) at the positions of indptr, sorted.
template <class T, class I, class Terms>
inline void fill_rows(const Terms& of, const column_sums<T, I>& sums, i64 begin, i64 end,
                      const I* indptr, I* indices, T* data) {
  const Terms terms = of;
  for (i64 row = begin; row < end; ++row) {
    I* const columns = indices + indptr[row];
    T* const values = data + indptr[row];
    sums.add_up(terms, row, [=](i64 place, I column, T sum) {
      columns[place] = column, values[place] = from_zero(sum);
    });
  }
}

// The values of rows [begin, end) of a matrix with a pattern that contains every term; the sums
// have the same bits as in a new matrix. `sums` has one element per column, with any content.
template <class T, class I, class Terms>
inline void value_rows(const Terms& of, T* sums, i64 begin, i64 end, const I* indptr,
                       const I* indices, T* data) {
  const Terms terms = of;
  for (i64 row = begin; row < end; ++row) {
    for (I e = indptr[row]; e < indptr[row + 1]; ++e)
      sums[indices[e]] = T(0);
    terms.visit(row, [&](i64 column, T value) { sums[column] += value; });
    for (I e = indptr[row]; e < indptr[row + 1]; ++e)
      data[e] = sums[indices[e]];
  }
}

// The terms of the product of two matrices, the second of n columns.
template <class T, class I>
struct product_terms {
  i64 m, n;
  const I *indptr, *indices;
  const T* data;
  const I *other_indptr, *other_indices;
  const T* other_data;

  WL_DEVICE i64 work(i64 row) const {
    i64 terms = 0;
    for (I e = indptr[row]; e < indptr[row + 1]; ++e)
      terms += other_indptr[indices[e] + 1] - other_indptr[indices[e]];
    return terms;
  }

  template <class Term>
  WL_DEVICE void visit(i64 row, Term&& term) const {
    for (I e = indptr[row]; e < indptr[row + 1]; ++e) {
      const T value = data[e];
      const I middle = indices[e];
      for (I f = other_indptr[middle]; f < other_indptr[middle + 1]; ++f)
        term(other_indices[f], rounded_product(value, other_data[f]));
    }
  }
};

} // namespace wl
