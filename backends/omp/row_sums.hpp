// Rows of a new matrix as sums of terms: products, sums of matrices, and duplicates that meet.
//
// Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted transposition",
// ACM TOMS 4 (1978). A thread adds up a row in an array with a place for every column. Which places
// are in use is kept as bits, in three levels: whether a column was met before is told by a word of
// a few kilobytes instead of a counter of its own, and the columns come out in rising order without
// a sort. Rows are stored as they are made and copied to the result, whose size is known then;
// where the terms might not fit into memory the rows are counted first and made a second time.
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

// A set of columns with a sum each.
template <class T>
class ColumnSums {
public:
  explicit ColumnSums(i64 columns)
      : sums_(columns), words_(columns / 64 + 1), groups_(columns / 4096 + 1),
        top_(columns / 262144 + 1) {}

  // Pages belong to the thread that touches them first.
  void clear() {
    std::fill_n(words_.data(), words_.size(), Word(0));
    std::fill_n(groups_.data(), groups_.size(), Word(0));
    std::fill_n(top_.data(), top_.size(), Word(0));
  }

  void add(i64 column, T value) {
    Word& word = words_.data()[column >> 6];
    const Word bit = Word(1) << (column & 63);
    if (word & bit) {
      sums_.data()[column] += value;
      return;
    }
    if (word == 0) {
      groups_.data()[column >> 12] |= Word(1) << (column >> 6 & 63);
      top_.data()[column >> 18] |= Word(1) << (column >> 12 & 63);
    }
    word |= bit;
    sums_.data()[column] = value;
  }

  // Calls use(column, sum) for all columns in rising order, and empties the set.
  template <class Use>
  void take(Use&& use) {
    for (std::size_t at = 0; at < top_.size(); ++at) {
      for_bits(top_.data()[at], i64(at), [&](i64 group) {
        for_bits(groups_.data()[group], group, [&](i64 word) {
          for_bits(words_.data()[word], word,
                   [&](i64 column) { use(column, sums_.data()[column]); });
        });
      });
    }
  }

private:
  using Word = std::uint64_t;

  Huge<T> sums_;
  Huge<Word> words_, groups_, top_;

  template <class Use>
  static void for_bits(Word& word, i64 place, Use&& use) {
    Word left = word;
    word = 0;
    for (; left != 0; left &= left - 1)
      use(place * 64 + __builtin_ctzll(left));
  }
};

// `Terms` has m, n, work(row), an upper bound of the row's terms, and visit(row, term), which calls
// term(column, value) for each of them. The order of visit is the order of the sums.
template <class T, class I, class Terms>
class RowSums {
public:
  RowSums(const Terms& terms, int threads) : terms_(terms), bounds_(1, 0) {
    std::vector<i64> before(terms.m + 1, 0);
    for (i64 row = 0; row < terms.m; ++row)
      before[row + 1] = before[row] + terms.work(row) + 1;
    const int parts = before[terms.m] < kSerialElements ? 1 : threads;
    for (int part = 1; part <= parts; ++part) {
      const i64 target = Share(before[terms.m], part - 1, parts).end;
      bounds_.push_back(std::lower_bound(before.begin(), before.end(), target) - before.begin());
    }
    piece_ = rows_of_a_piece(terms.m, before[terms.m]);
    const bool at_once = before[terms.m] * i64(sizeof(T) + sizeof(I)) <= kRowsAtOnce;
    for (int part = 0; part < parts; ++part) {
      sums_.emplace_back(std::make_unique<ColumnSums<T>>(terms.n));
      // room for all terms: memory that is never touched costs nothing
      const i64 room = at_once ? before[bounds_[part + 1]] - before[bounds_[part]] : 0;
      columns_.emplace_back(room);
      values_.emplace_back(room);
    }
    at_once_ = at_once;
  }

  // Fills indptr, of m + 1, and returns the number of entries.
  i64 count(I* indptr) {
    each_part([&](int part, ColumnSums<T>& sums, i64 begin, i64 end, i64& made) {
      I* const columns = columns_[part].data();
      T* const values = values_[part].data();
      for (i64 row = begin; row < end; ++row) {
        const i64 first = made;
        terms_.visit(row, [&](i64 column, T value) { sums.add(column, value); });
        if (at_once_)
          sums.take([&](i64 column, T value) {
            columns[made] = static_cast<I>(column);
            values[made++] = value;
          });
        else
          sums.take([&](i64, T) { ++made; });
        indptr[row + 1] = static_cast<I>(made - first);
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
    each_part([&](int part, ColumnSums<T>& sums, i64 begin, i64 end, i64& made) {
      const i64 to = indptr[bounds_[part]];
      for (i64 row = begin; row < end; ++row) {
        terms_.visit(row, [&](i64 column, T value) { sums.add(column, value); });
        sums.take([&](i64 column, T value) {
          indices[to + made] = static_cast<I>(column);
          data[to + made++] = value;
        });
      }
    });
  }

private:
  const Terms& terms_;
  std::vector<i64> bounds_;
  i64 piece_; // rows between two looks for Ctrl-C
  bool at_once_ = true;
  std::vector<std::unique_ptr<ColumnSums<T>>> sums_;
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
