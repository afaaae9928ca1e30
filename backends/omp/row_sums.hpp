// Rows of a new matrix as sums of terms: products, sums of matrices, and duplicates that meet.
//
// Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted transposition",
// ACM TOMS 4 (1978). A thread adds up a row in an array with a place for every column. Rows are
// stored as they are made and copied to the result, whose size is known then; where the terms might
// not fit into memory the rows are counted first and made a second time.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "huge.hpp"
#include "parallel.hpp"

namespace wl {

// Says that the result has more entries than its index type can count.
struct TooManyEntries : std::overflow_error {
  TooManyEntries()
      : std::overflow_error("the result has more entries than int32 indices can count") {}
};

// Bytes of rows that are made at once, before their number is known; beyond, rows are made twice.
constexpr i64 kRowsAtOnce = i64(1) << 31;

// -0, to which any number can be added and stays what it is: the sum of no terms.
template <class R>
constexpr R no_terms(R) {
  return R(-0.0);
}
template <class R>
constexpr complex<R> no_terms(complex<R>) {
  return {R(-0.0), R(-0.0)};
}

// Whether a sum is -0, bit for bit.
template <class T>
bool has_no_terms(T sum) {
  const T none = no_terms(T());
  return std::memcmp(&sum, &none, sizeof(T)) == 0;
}

// Columns of a row that are put in order by counting, for each, those that are smaller.
constexpr i64 kRanked = 64;

// Writes how many of `count` different columns are smaller than each of them. All are read in
// groups of kRankedTogether, for vector registers: there is room behind the last.
constexpr int kRankedTogether = 16;
template <class I>
void rank(const I* columns, i64 count, I* places) {
  for (i64 first = 0; first < count; first += kRankedTogether) {
    I mine[kRankedTogether], smaller[kRankedTogether] = {};
    std::copy_n(columns + first, kRankedTogether, mine);
    for (i64 other = 0; other < count; ++other) {
      const I column = columns[other];
#pragma omp simd
      for (int lane = 0; lane < kRankedTogether; ++lane)
        smaller[lane] += column < mine[lane];
    }
    std::copy_n(smaller, kRankedTogether, places + first);
  }
}

// Adds up rows, one after the other, in an array with a place for every column.
//
// Sums begin at -0, and a column is met for the first time where its sum is that: then no branch
// depends on whether a column was met. Of few columns each one's place in the row is counted; those
// of longer rows are kept as bits, in three levels, which are read in rising order. Where there are
// far more columns than terms, to write -0 everywhere would take longer than the rows: bits tell
// there which columns were met.
template <class T, class I>
class ColumnSums {
public:
  // `longest` is the largest number of terms of a row.
  ColumnSums(i64 columns, i64 longest, bool all_begin)
      : sums_(columns), words_(columns / 64 + 1), groups_(columns / 4096 + 1),
        top_(columns / 262144 + 1), found_(all_begin ? longest + 1 + kRankedTogether : 0),
        all_begin_(all_begin) {}

  // Pages belong to the thread that touches them first.
  void clear() {
    if (all_begin_)
      std::fill_n(sums_.data(), sums_.size(), no_terms(T()));
    std::fill_n(words_.data(), words_.size(), Word(0));
    std::fill_n(groups_.data(), groups_.size(), Word(0));
    std::fill_n(top_.data(), top_.size(), Word(0));
  }

  // Calls use(place, column, sum) for the columns of a row, where `place` is how many are smaller,
  // and returns how many there are.
  template <class Terms, class Use>
  i64 add_up(const Terms& terms, i64 row, Use&& use) {
    if (!all_begin_) {
      terms.visit(row, [&](i64 column, T value) { add(column, value); });
      return take(use);
    }
    T* const sums = sums_.data();
    I* const found = found_.data();
    i64 count = 0;
    bool twice = false; // -0 was added to nothing: the column may be found again
    terms.visit(row, [&](i64 column, T value) {
      const T before = sums[column], after = before + value;
      found[count] = static_cast<I>(column);
      count += has_no_terms(before);
      twice |= has_no_terms(after);
      sums[column] = after;
    });
    if (twice || count > kRanked) {
      for (i64 at = 0; at < count; ++at)
        insert(found[at]);
      return take(use);
    }
    I places[kRanked + kRankedTogether];
    rank(found, count, places);
    for (i64 at = 0; at < count; ++at) {
      const I column = found[at];
      use(i64(places[at]), column, sums[column]);
      sums[column] = no_terms(T());
    }
    return count;
  }

private:
  using Word = std::uint64_t;

  Huge<T> sums_;
  Huge<Word> words_, groups_, top_;
  Huge<I> found_;
  bool all_begin_;

  void add(i64 column, T value) {
    if (words_.data()[column >> 6] >> (column & 63) & 1) {
      sums_.data()[column] += value;
      return;
    }
    insert(column);
    sums_.data()[column] = value;
  }

  void insert(i64 column) {
    Word& word = words_.data()[column >> 6];
    if (word == 0) {
      groups_.data()[column >> 12] |= Word(1) << (column >> 6 & 63);
      top_.data()[column >> 18] |= Word(1) << (column >> 12 & 63);
    }
    word |= Word(1) << (column & 63);
  }

  // Calls use(place, column, sum) in rising order, and empties the set.
  template <class Use>
  i64 take(Use&& use) {
    i64 place = 0;
    T* const sums = sums_.data();
    for (std::size_t at = 0; at < top_.size(); ++at)
      for_bits(top_.data()[at], i64(at), [&](i64 group) {
        for_bits(groups_.data()[group], group, [&](i64 word) {
          for_bits(words_.data()[word], word, [&](i64 column) {
            use(place++, static_cast<I>(column), sums[column]);
            sums[column] = no_terms(T());
          });
        });
      });
    return place;
  }

  template <class Use>
  static void for_bits(Word& word, i64 place, Use&& use) {
    Word left = word;
    word = 0;
    for (; left != 0; left &= left - 1)
      use(place * 64 + __builtin_ctzll(left));
  }
};

// Writes how many terms there are in the rows before each, and one for each row; returns the
// largest number of a row. `before` has room for one more than there are rows.
template <class Terms>
i64 terms_before(const Terms& terms, int threads, i64* before) {
  const int parts = terms.m < kSerialElements ? 1 : threads;
  std::vector<i64> most(parts, 0);
  before[0] = 0;
  for_parts(parts, [&](int part) {
    const Share share(terms.m, part, parts);
    i64 longest = 0;
    for (i64 row = share.begin; row < share.end; ++row) {
      const i64 work = terms.work(row);
      longest = std::max(longest, work);
      before[row + 1] = work + 1;
    }
    most[part] = longest;
  });
  for (i64 row = 0; row < terms.m; ++row)
    before[row + 1] += before[row];
  return *std::max_element(most.begin(), most.end());
}

// `Terms` has m, n, work(row), an upper bound of the row's terms, and visit(row, term), which calls
// term(column, value) for each of them. The order of visit is the order of the sums.
template <class T, class I, class Terms>
class RowSums {
public:
  RowSums(const Terms& terms, int threads) : terms_(terms), bounds_(1, 0) {
    const Huge<i64> counted(terms.m + 1);
    i64* const before = counted.data();
    const i64 longest = terms_before(terms, threads, before), work = before[terms.m];
    const int parts = work < kSerialElements ? 1 : threads;
    for (int part = 1; part <= parts; ++part) {
      const i64 target = Share(work, part - 1, parts).end;
      bounds_.push_back(std::lower_bound(before, before + terms.m + 1, target) - before);
    }
    piece_ = rows_of_a_piece(terms.m, work);
    at_once_ = work * i64(sizeof(T) + sizeof(I)) <= kRowsAtOnce;
    for (int part = 0; part < parts; ++part) {
      sums_.push_back(std::make_unique<ColumnSums<T, I>>(terms.n, longest, terms.n <= work));
      // room for all terms: memory that is never touched costs nothing
      const i64 room = at_once_ ? before[bounds_[part + 1]] - before[bounds_[part]] : 0;
      columns_.emplace_back(room);
      values_.emplace_back(room);
    }
  }

  // Fills indptr, of m + 1, and returns the number of entries.
  i64 count(I* indptr) {
    each_part([&](int part, ColumnSums<T, I>& sums, i64 begin, i64 end, i64& made) {
      I* const columns = columns_[part].data();
      T* const values = values_[part].data();
      const bool stored = at_once_;
      const Terms terms = terms_;
      for (i64 row = begin; row < end; ++row) {
        const i64 length = sums.add_up(terms, row, [=](i64 place, I column, T sum) {
          if (stored)
            columns[made + place] = column, values[made + place] = sum;
        });
        indptr[row + 1] = static_cast<I>(length);
        made += length;
      }
    });
    i64 total = 0;
    indptr[0] = 0;
    for (i64 row = 0; row < terms_.m; ++row) {
      total += indptr[row + 1];
      if (total > std::numeric_limits<I>::max())
        throw TooManyEntries();
      indptr[row + 1] = static_cast<I>(total);
    }
    return total;
  }

  // Fills the rows that indptr has room for, sorted.
  void fill(const I* indptr, I* indices, T* data) {
    if (at_once_) {
      const int parts = static_cast<int>(bounds_.size()) - 1;
      for_parts(parts, [&](int part) {
        const i64 to = indptr[bounds_[part]], length = indptr[bounds_[part + 1]] - to;
        std::copy_n(columns_[part].data(), length, indices + to);
        std::copy_n(values_[part].data(), length, data + to);
      });
      return;
    }
    each_part([&](int, ColumnSums<T, I>& sums, i64 begin, i64 end, i64&) {
      for (i64 row = begin; row < end; ++row) {
        I* const columns = indices + indptr[row];
        T* const values = data + indptr[row];
        sums.add_up(terms_, row, [=](i64 place, I column, T sum) {
          columns[place] = column, values[place] = sum;
        });
      }
    });
  }

private:
  const Terms& terms_;
  std::vector<i64> bounds_;
  i64 piece_; // rows between two looks for Ctrl-C
  bool at_once_ = true;
  std::vector<std::unique_ptr<ColumnSums<T, I>>> sums_;
  std::vector<Huge<I>> columns_;
  std::vector<Huge<T>> values_;

  template <class Body>
  void each_part(Body&& body) {
    const int parts = static_cast<int>(bounds_.size()) - 1;
    for_parts(parts, [&](int part) {
      sums_[part]->clear();
      i64 made = 0;
      in_pieces(bounds_[part], bounds_[part + 1], piece_,
                [&](i64 begin, i64 end) { body(part, *sums_[part], begin, end, made); });
    });
  }
};

} // namespace wl
