// What csr.spmv keeps of a matrix between products: who computes which rows, and with which kernel.
#pragma once

#include <memory>

#include "csr_arrays.hpp"
#include "huge.hpp"
#include "parallel.hpp"
#include "row_cuts.hpp"
#include "spmv_operands.hpp"
#include "spmv_pattern.hpp"
#include "spmv_sellp.hpp"

namespace wl {

// One kernel made ready for one matrix.
class CsrState {
public:
  virtual ~CsrState() = default;

  // How much memory it takes.
  virtual i64 bytes() const = 0;
};

// Values are of S and operands of T; S may be the lower precision.
template <class S, class T, class I>
class CsrStateOf : public CsrState {
public:
  virtual void spmv(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, int threads) const = 0;

  // Brings copies of the values in line with the matrix; its pattern is the same.
  virtual void update_values(const CsrArrays<S, I>&) {}
};

// Rows of equal shares of entries; long rows are cut.
template <class S, class T, class I>
class CsrRows final : public CsrStateOf<S, T, I> {
public:
  CsrRows(const CsrArrays<S, I>& A, int parts)
      : cuts_(balanced_cuts(A.indptr, static_cast<I>(A.m), parts)),
        few_(has_short_rows(A.indptr, static_cast<I>(A.m))) {}

  i64 bytes() const override { return bytes_of(cuts_); }

  void spmv(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, int threads) const override {
    const int parts = static_cast<int>(cuts_.size()) - 1;
    const i64 piece = rows_of_a_piece(A.m, A.nnz() * o.k);
    const auto rows = [&](i64 begin, i64 end) {
      in_pieces(begin, end, piece, [&](i64 from, i64 to) {
        csr_rows(from, to, A.indptr, A.indices, A.data, o.x, o.y, o.k, o.alpha, o.beta, few_);
      });
    };
    if (parts == 1 || threads == 1 || A.nnz() * o.k < kSerialEntries)
      return rows(0, A.m);
    Scratch<T> carries(parts * o.k);
    T* const carry = carries.data();
    for_parts(parts, [&](int part) {
      csr_part(cuts_[part], cuts_[part + 1], A.indptr, A.indices, A.data, o.x, o.y, o.k, o.alpha,
               o.beta, carry + part * o.k, rows);
    });
    add_carries(parts, [this](i64 part) { return cuts_[part]; }, A.indptr, o.y, o.k, carry);
  }

private:
  std::vector<row_cut> cuts_;
  bool few_;
};

// Runs of rows with the same offsets.
template <class S, class T, class I>
class CsrPatterns final : public CsrStateOf<S, T, I> {
public:
  CsrPatterns(const CsrArrays<S, I>& A, RowPatterns<I> patterns, int parts)
      : patterns_(std::move(patterns)),
        bounds_(balanced_rows(A.indptr, static_cast<I>(A.m), parts)) {}

  i64 bytes() const override {
    return bytes_of(patterns_.run_end) + bytes_of(patterns_.run_pattern) +
           bytes_of(patterns_.pattern_ptr) + bytes_of(patterns_.offsets) + bytes_of(bounds_);
  }

  void spmv(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, int threads) const override {
    const int parts = static_cast<int>(bounds_.size()) - 1;
    if (parts == 1 || threads == 1 || A.nnz() * o.k < kSerialEntries) {
      rows(A, o, 0, static_cast<I>(A.m));
      return;
    }
    for_parts(parts, [&](int part) { rows(A, o, bounds_[part], bounds_[part + 1]); });
  }

private:
  RowPatterns<I> patterns_;
  std::vector<I> bounds_;

  void rows(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, I begin, I end) const {
    in_pieces(begin, end, rows_of_a_piece(A.m, A.nnz() * o.k), [&](i64 from, i64 to) {
      pattern_spmv_rows(from, to, A.indptr, patterns_, A.data, o.x, o.y, o.k, o.alpha, o.beta);
    });
  }
};

// A copy in slices of rows of similar length; long rows stay in CSR and are cut.
template <class S, class T, class I>
class CsrSell final : public CsrStateOf<S, T, I> {
public:
  CsrSell(const CsrArrays<S, I>& A, int parts)
      : parts_(parts), rows_(A.m), lengths_(A.m), slice_ptr_(slice_count(A.m) + 1) {
    const I m = static_cast<I>(A.m);
    sell_order(m, A.indptr, rows_.data(), lengths_.data(), slice_ptr_.data());
    const i64 slots = slice_ptr_.data()[slice_count(A.m)];
    indices_ = Huge<I>(slots);
    data_ = Huge<S>(slots);
    sell_fill(m, A.indptr, A.indices, rows_.data(), lengths_.data(), slice_ptr_.data(),
              indices_.data(), parts_);
    update_values(A);
    bounds_ = balanced_rows(slice_ptr_.data(), slice_count(A.m), parts * kSellSharesPerThread);
    for (I row = 0; row < m; ++row)
      if (A.indptr[row + 1] - A.indptr[row] > kCutRow)
        for (i64 entry = A.indptr[row]; entry < A.indptr[row + 1]; entry += kCutRow)
          pieces_.push_back({row, entry});
  }

  i64 bytes() const override {
    return bytes_of(rows_) + bytes_of(lengths_) + bytes_of(indices_) + bytes_of(slice_ptr_) +
           bytes_of(data_) + bytes_of(bounds_) + bytes_of(pieces_);
  }

  // The pieces of long rows come first, so that no thread ends with one. They are added in their
  // order, so the result does not depend on the number of threads.
  void spmv(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, int threads) const override {
    const int pieces = static_cast<int>(pieces_.size());
    const int shares = static_cast<int>(bounds_.size()) - 1;
    const bool serial = threads == 1 || A.nnz() * o.k < kSerialEntries;
    const i64 piece = rows_of_a_piece(slice_count(A.m), A.nnz() * o.k);
    Scratch<T> sums(pieces * o.k);
    T* const sum = sums.data();
    for_each_in_turn(pieces + shares, 1, serial ? 1 : threads, [&](i64 at) {
      if (at < pieces)
        long_piece(A, o, pieces_[at], sum + at * o.k);
      else
        in_pieces(bounds_[at - pieces], bounds_[at - pieces + 1], piece,
                  [&](i64 from, i64 to) { slices(A, o, from, to); });
    });
    for (int at = 0; at < pieces; ++at)
      for (i64 c = 0; c < o.k; ++c)
        o.y.data[pieces_[at].row * o.y.ld + c] += sum[at * o.k + c];
  }

  void update_values(const CsrArrays<S, I>& A) override {
    sell_fill(static_cast<I>(A.m), A.indptr, A.data, rows_.data(), lengths_.data(),
              slice_ptr_.data(), data_.data(), parts_);
  }

private:
  // Up to kCutRow entries of a long row, from `entry` on.
  using Piece = row_cut;

  int parts_;
  Huge<I> rows_, lengths_, indices_;
  Huge<i64> slice_ptr_;
  Huge<S> data_;
  std::vector<i64> bounds_;
  std::vector<Piece> pieces_;

  static void long_piece(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, const Piece& from,
                         T* sum) {
    const i64 end = std::min<i64>(from.entry + kCutRow, A.indptr[from.row + 1]);
    csr_row(from.entry, end, A.indices, A.data, o.x, sum, o.k, o.alpha, T(0));
  }

  void slices(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, i64 begin, i64 end) const {
    sell_spmv_slices(begin, end, A.m, A.n, slice_ptr_.data(), lengths_.data(), rows_.data(),
                     indices_.data(), data_.data(), o.x, o.y, o.k, o.alpha, o.beta);
  }
};

} // namespace wl
