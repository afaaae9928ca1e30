// The entries of a CSR matrix in slices of rows of similar length; long rows lie behind one another
// and are cut. A product reads nothing else.
#pragma once

#include <algorithm>
#include <vector>

#include "omp/csr_arrays.hpp"
#include "omp/huge.hpp"
#include "omp/parallel.hpp"
#include "omp/spmv_operands.hpp"
#include "omp/spmv_sellp.hpp"

namespace wl {

template <class S, class T, class I>
class SlicedEntries {
public:
  SlicedEntries(const CsrArrays<S, I>& A, int parts)
      : parts_(parts), m_(A.m), n_(A.n), nnz_(A.nnz()), rows_(A.m), lengths_(A.m),
        slice_ptr_(slice_count(A.m) + 1) {
    const I m = static_cast<I>(A.m);
    sell_order(m, A.indptr, rows_.data(), lengths_.data(), slice_ptr_.data(), parts_);
    const i64 slots = slice_ptr_.data()[slice_count(A.m)];
    indices_ = Huge<I>(slots);
    data_ = Huge<S>(slots);
    sell_fill(m, A.indptr, A.indices, rows_.data(), lengths_.data(), slice_ptr_.data(),
              indices_.data(), parts_);
    i64 entries = 0;
    for (I row = 0; row < m; ++row)
      if (A.indptr[row + 1] - A.indptr[row] > kCutRow)
        for (i64 from = A.indptr[row]; from < A.indptr[row + 1]; from += kCutRow) {
          const i64 count = std::min<i64>(kCutRow, A.indptr[row + 1] - from);
          pieces_.push_back({row, from, entries, entries + count});
          entries += count;
        }
    long_indices_ = Huge<I>(entries);
    long_data_ = Huge<S>(entries);
    copy_pieces(A.indices, long_indices_.data());
    update_values(A);
    bounds_ = balanced_rows(slice_ptr_.data(), slice_count(A.m), parts * kSellSharesPerThread);
  }

  i64 bytes() const {
    return bytes_of(rows_) + bytes_of(lengths_) + bytes_of(indices_) + bytes_of(slice_ptr_) +
           bytes_of(data_) + bytes_of(long_indices_) + bytes_of(long_data_) + bytes_of(bounds_) +
           bytes_of(pieces_);
  }

  // The pieces of long rows come first, so that no thread ends with one. They are added in their
  // order, so the result does not depend on the number of threads.
  void spmv(const SpmvOperands<T>& o, int threads) const {
    const int pieces = static_cast<int>(pieces_.size());
    const int shares = static_cast<int>(bounds_.size()) - 1;
    const bool serial = threads == 1 || nnz_ * o.k < kSerialEntries;
    const i64 piece = rows_of_a_piece(slice_count(m_), nnz_ * o.k);
    Scratch<T> sums(pieces * o.k);
    T* const sum = sums.data();
    for_each_in_turn(pieces + shares, 1, serial ? 1 : threads, [&](i64 at) {
      if (at < pieces)
        long_piece(o, pieces_[at], sum + at * o.k);
      else
        in_pieces(bounds_[at - pieces], bounds_[at - pieces + 1], piece,
                  [&](i64 from, i64 to) { slices(o, from, to); });
    });
    for (int at = 0; at < pieces; ++at)
      for (i64 c = 0; c < o.k; ++c)
        o.y.data[pieces_[at].row * o.y.ld + c] += sum[at * o.k + c];
  }

  void update_values(const CsrArrays<S, I>& A) {
    sell_fill(static_cast<I>(A.m), A.indptr, A.data, rows_.data(), lengths_.data(),
              slice_ptr_.data(), data_.data(), parts_);
    copy_pieces(A.data, long_data_.data());
  }

private:
  // Up to kCutRow entries of a long row: from `source` on in the matrix, begin to end here.
  struct Piece {
    i64 row, source, begin, end;
  };

  int parts_;
  i64 m_, n_, nnz_;
  Huge<I> rows_, lengths_, indices_, long_indices_;
  Huge<i64> slice_ptr_;
  Huge<S> data_, long_data_;
  std::vector<i64> bounds_;
  std::vector<Piece> pieces_;

  // Copies the indices or data (V) of long rows of the matrix to their position here.
  template <class V>
  void copy_pieces(const V* entries, V* target) const {
    for_each_in_turn(static_cast<i64>(pieces_.size()), 1, parts_, [&](i64 at) {
      const Piece& piece = pieces_[at];
      std::copy_n(entries + piece.source, piece.end - piece.begin, target + piece.begin);
    });
  }

  void long_piece(const SpmvOperands<T>& o, const Piece& piece, T* sum) const {
    csr_row(piece.begin, piece.end, long_indices_.data(), long_data_.data(), o.x, sum, o.k, o.alpha,
            T(0));
  }

  void slices(const SpmvOperands<T>& o, i64 begin, i64 end) const {
    sell_spmv_slices(begin, end, m_, n_, slice_ptr_.data(), lengths_.data(), rows_.data(),
                     indices_.data(), data_.data(), o.x, o.y, o.k, o.alpha, o.beta);
  }
};

} // namespace wl
