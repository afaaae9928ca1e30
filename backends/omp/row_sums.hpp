// Rows of a new matrix as sums of terms, on several threads; backends/cpu has the rows of one
// thread.
//
// Rows are stored as they are made and copied to the result once its size is known; where the terms
// might not fit into memory the rows are counted first and made a second time.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "cpu/column_sums.hpp"
#include "omp/huge.hpp"
#include "omp/parallel.hpp"

namespace wl {

// Says that the result has more entries than its index type can count.
struct TooManyEntries : std::overflow_error {
  TooManyEntries()
      : std::overflow_error("the result has more entries than int32 indices can count") {}
};

// Bytes of rows that are made at once, before their number is known; beyond, rows are made twice.
constexpr i64 kRowsAtOnce = i64(1) << 31;

// The memory of a part in which rows are added up; see column_sums. Pages belong to the thread that
// touches them first.
template <class T, class I>
class SumsMemory {
public:
  SumsMemory(i64 columns, i64 longest, bool all_begin)
      : columns_(columns), all_begin_(all_begin), sums_(columns), bits_(Sums::words(columns)),
        found_(all_begin ? Sums::room(longest) : 0) {}

  column_sums<T, I> sums() const {
    return {columns_, all_begin_, sums_.data(), bits_.data(), found_.data()};
  }

private:
  using Sums = column_sums<T, I>;

  i64 columns_;
  bool all_begin_;
  Huge<T> sums_;
  Huge<typename Sums::word> bits_;
  Huge<I> found_;
};

// Writes how many terms there are in the rows before each, and one for each row; returns the
// largest number of a row. `before` has one element more than there are rows.
template <class Terms>
i64 terms_before(const Terms& terms, int threads, i64* before) {
  const int parts = terms.m < kSerialElements ? 1 : threads;
  std::vector<i64> most(parts, 0);
  before[0] = 0;
  for_parts(parts, [&](int part) {
    const Share share(terms.m, part, parts);
    most[part] = count_terms(terms, share.begin, share.end, before + 1);
  });
  for (i64 row = 0; row < terms.m; ++row)
    before[row + 1] += before[row] + 1;
  return *std::max_element(most.begin(), most.end());
}

// `Terms` has m and n besides the members that backends/cpu asks of it.
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
      memory_.emplace_back(terms.n, longest, terms.n <= work);
      // capacity for all terms: memory that is never touched costs nothing
      const i64 room = at_once_ ? before[bounds_[part + 1]] - before[bounds_[part]] : 0;
      columns_.emplace_back(room);
      values_.emplace_back(room);
    }
  }

  // Fills indptr, of m + 1, and returns the number of entries.
  i64 count(I* indptr) {
    each_part([&](int part, const column_sums<T, I>& sums, i64 begin, i64 end, i64& made) {
      I* const columns = at_once_ ? columns_[part].data() + made : nullptr;
      T* const values = at_once_ ? values_[part].data() + made : nullptr;
      made += make_rows(terms_, sums, begin, end, indptr + 1, columns, values);
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

  // Fills the rows that indptr describes, sorted.
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
    each_part([&](int, const column_sums<T, I>& sums, i64 begin, i64 end, i64&) {
      fill_rows(terms_, sums, begin, end, indptr, indices, data);
    });
  }

private:
  const Terms& terms_;
  std::vector<i64> bounds_;
  i64 piece_; // rows between two looks for Ctrl-C
  bool at_once_ = true;
  std::vector<SumsMemory<T, I>> memory_;
  std::vector<Huge<I>> columns_;
  std::vector<Huge<T>> values_;

  template <class Body>
  void each_part(Body&& body) {
    const int parts = static_cast<int>(bounds_.size()) - 1;
    for_parts(parts, [&](int part) {
      const column_sums<T, I> sums = memory_[part].sums();
      sums.clear();
      i64 made = 0;
      in_pieces(bounds_[part], bounds_[part + 1], piece_,
                [&](i64 begin, i64 end) { body(part, sums, begin, end, made); });
    });
  }
};

} // namespace wl
