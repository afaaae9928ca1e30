// Sums of two matrices with strictly rising rows, on several threads; backends/cpu has the rows of
// one thread.
#pragma once

#include <limits>
#include <vector>

#include "omp/csr_arrays.hpp"
#include "cpu/first_row.hpp"
#include "cpu/merged_rows.hpp"
#include "omp/parallel.hpp"
#include "omp/row_sums.hpp"

namespace wl {

template <class T, class I>
class MergedSums {
public:
  MergedSums(const CsrArrays<T, I>& A, const CsrArrays<T, I>& B, int threads)
      : m_(A.m), rows_{A.indptr, A.indices, A.data, B.indptr, B.indices, B.data}, bounds_(1, 0) {
    const i64 all = rows_.before(m_);
    const int parts = all < kSerialElements ? 1 : threads;
    for (int part = 0; part < parts; ++part)
      bounds_.push_back(
          first_row(m_, Share(all, part, parts).end, [&](i64 row) { return rows_.before(row); }));
    piece_ = rows_of_a_piece(m_, all);
  }

  // Fills indptr, of m + 1, and returns the number of entries; -1 if a row does not rise.
  i64 count(I* indptr) const {
    const int parts = static_cast<int>(bounds_.size()) - 1;
    std::vector<char> rise(parts, 1);
    for_parts(parts, [&](int part) {
      bool good = true;
      in_pieces(bounds_[part], bounds_[part + 1], piece_, [&](i64 begin, i64 end) {
        good = good && rows_.count(begin, end, indptr + 1) >= 0;
      });
      rise[part] = good;
    });
    i64 total = 0;
    indptr[0] = 0;
    for (const char good : rise)
      if (!good)
        return -1;
    for (i64 row = 0; row < m_; ++row) {
      total += indptr[row + 1];
      if (total > std::numeric_limits<I>::max())
        throw TooManyEntries();
      indptr[row + 1] = static_cast<I>(total);
    }
    return total;
  }

  // Fills the rows that indptr describes.
  void fill(T alpha, T beta, const I* indptr, I* indices, T* data) const {
    const int parts = static_cast<int>(bounds_.size()) - 1;
    for_parts(parts, [&](int part) {
      in_pieces(bounds_[part], bounds_[part + 1], piece_, [&](i64 begin, i64 end) {
        rows_.fill(begin, end, alpha, beta, indptr, indices, data);
      });
    });
  }

private:
  i64 m_;
  merged_rows<T, I> rows_;
  std::vector<i64> bounds_;
  i64 piece_; // rows between two looks for Ctrl-C
};

} // namespace wl
