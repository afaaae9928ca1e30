// Rows of a new matrix as sums of terms: products, sums of matrices, and duplicates that meet.
//
// Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted transposition",
// ACM TOMS 4 (1978), in two phases: the first counts the places of each row, the second fills them.
// A thread keeps one counter per column, so nothing is cleared between rows.
#pragma once

#include <limits>
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
    const std::size_t counters = static_cast<std::size_t>(parts) * terms.n;
    seen_ = Huge<i64>(counters);
    sums_ = Huge<T>(counters);
  }

  // Fills indptr, of m + 1, and returns the number of entries.
  i64 count(I* indptr) {
    each_part([&](i64* seen, T*, i64 begin, i64 end) {
      for (i64 row = begin; row < end; ++row) {
        i64 places = 0;
        terms_.visit(row, [&](i64 column, T) {
          places += seen[column] != row;
          seen[column] = row;
        });
        indptr[row + 1] = static_cast<I>(places);
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
    each_part([&](i64* seen, T* sums, i64 begin, i64 end) {
      for (i64 row = begin; row < end; ++row) {
        I* const columns = indices + indptr[row];
        I* last = columns;
        terms_.visit(row, [&](i64 column, T value) {
          if (seen[column] != row) {
            seen[column] = row;
            sums[column] = value;
            *last++ = static_cast<I>(column);
          } else {
            sums[column] += value;
          }
        });
        if (!std::is_sorted(columns, last))
          std::sort(columns, last);
        T* values = data + indptr[row];
        for (const I* column = columns; column != last; ++column)
          *values++ = sums[*column];
      }
    });
  }

private:
  const Terms& terms_;
  std::vector<i64> bounds_;
  i64 piece_; // rows between two looks for Ctrl-C
  Huge<i64> seen_;
  Huge<T> sums_;

  template <class Body>
  void each_part(Body&& body) {
    const int parts = static_cast<int>(bounds_.size()) - 1;
    for_parts(parts, [&](int part) {
      i64* const seen = seen_.data() + part * terms_.n;
      std::fill_n(seen, terms_.n, i64(-1));
      in_pieces(bounds_[part], bounds_[part + 1], piece_, [&](i64 begin, i64 end) {
        body(seen, sums_.data() + part * terms_.n, begin, end);
      });
    });
  }
};

} // namespace wl
