// The state of csr.spmv for a matrix between products: the rows and the kernel of each thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "omp/csr_arrays.hpp"
#include "omp/huge.hpp"
#include "omp/parallel.hpp"
#include "omp/row_cuts.hpp"
#include "omp/row_lengths.hpp"
#include "omp/sliced_entries.hpp"
#include "omp/spmv_operands.hpp"
#include "omp/spmv_pattern.hpp"
#include "omp/uninterrupted.hpp"

namespace wl {

// One kernel made ready for one matrix.
class CsrState {
public:
  virtual ~CsrState() = default;

  // The bytes of its memory.
  virtual i64 bytes() const = 0;
};

// One for operands of T.
template <class T>
class CsrStateFor : public CsrState {
public:
  // Whether it holds all entries, so that products read no array of the matrix.
  virtual bool holds_entries() const { return false; }

  // The product by the state alone, if it holds all entries.
  virtual void spmv_alone(const SpmvOperands<T>&, int /*threads*/) const {}
};

// Values are of S and operands of T; S may be the lower precision.
template <class S, class T, class I>
class CsrStateOf : public CsrStateFor<T> {
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
        few_(has_short_rows(A.indptr, static_cast<I>(A.m))),
        mostly_empty_(A.nnz() <= A.m / kRowsOfEntry) {
    for (i64 row = 0; mostly_empty_ && row < A.m; ++row)
      if (A.indptr[row + 1] > A.indptr[row])
        filled_.push_back(static_cast<I>(row));
  }

  i64 bytes() const override { return bytes_of(cuts_) + bytes_of(filled_); }

  void spmv(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, int threads) const override {
    const int parts = static_cast<int>(cuts_.size()) - 1;
    const i64 piece = rows_of_a_piece(A.m, A.nnz() * o.k);
    const auto rows = [&](i64 begin, i64 end) {
      in_pieces(begin, end, piece, [&](i64 from, i64 to) {
        if (mostly_empty_ && o.k == 1 && o.x.ld == 1)
          filled_rows(A, o, from, to);
        else
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
  // If there are more rows than this number times the number of entries, rows without entries are
  // skipped: for two million rows with 100,000 entries a product then takes half the time.
  static constexpr i64 kRowsOfEntry = 4;

  std::vector<row_cut> cuts_;
  bool few_, mostly_empty_;
  std::vector<I> filled_; // the rows with entries, if most rows are empty

  // The product of one vector for rows [row, last) with the bits of csr_rows, which reads no
  // pointers of empty rows.
  void filled_rows(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, i64 row, i64 last) const {
    auto next = std::lower_bound(filled_.begin(), filled_.end(), row);
    with_row_dot<T>(few_, [&](auto dot) {
      with_column(o.y, o.alpha, o.beta, [&](auto column) {
        for (; row < last; ++row) {
          const i64 filled = next == filled_.end() ? last : std::min<i64>(*next, last);
          for (; row < filled; ++row)
            column.put(row, T(0));
          if (row == last)
            return;
          const i64 begin = A.indptr[row], count = A.indptr[row + 1] - begin;
          column.put(row, dot(A.data + begin, A.indices + begin, count, o.x.data));
          ++next;
        }
      });
    });
  }
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

// A copy in slices of rows of similar length; long rows are stored one after the other and are cut.
//
// The copy costs the time of several products. So the first product goes row by row if it has
// the same bits as the copy; the second product, or new values, make the copy.
template <class S, class T, class I>
class CsrSell final : public CsrStateOf<S, T, I> {
public:
  CsrSell(const CsrArrays<S, I>& A, int parts) : parts_(parts) {
    if (has_rows_like_slices(A))
      bounds_ = balanced_rows(A.indptr, static_cast<I>(A.m), parts);
    else
      packed(A);
  }

  i64 bytes() const override { return bytes_of(bounds_) + (made_ ? packed_->bytes() : 0); }

  void spmv(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, int threads) const override {
    if (bounds_.size() > 0 && o.k == 1 && o.x.ld == 1 && !multiplied_.exchange(true))
      by_rows(A, o, threads);
    else
      packed(A).spmv(o, threads);
  }

  bool holds_entries() const override { return made_; }

  void spmv_alone(const SpmvOperands<T>& o, int threads) const override {
    packed_->spmv(o, threads);
  }

  void update_values(const CsrArrays<S, I>& A) override {
    if (made_)
      packed_->update_values(A);
    else
      packed(A);
  }

private:
  int parts_;
  std::vector<I> bounds_; // of the parts of a product by rows; none where it has other bits
  mutable std::atomic<bool> multiplied_{false}, made_{false};
  mutable std::mutex making_;
  mutable std::unique_ptr<SlicedEntries<S, T, I>> packed_;

  // Whether rows that are added up in order have the bits of slices: longer rows are cut, or added
  // up in pieces.
  static bool has_rows_like_slices(const CsrArrays<S, I>& A) {
    return row_lengths(A.indptr, 0, A.m).longest <= std::min<i64>(kCutRow, PIECE_OF_SUM);
  }

  // The copy; the first call makes it.
  const SlicedEntries<S, T, I>& packed(const CsrArrays<S, I>& A) const {
    if (!made_) {
      const std::lock_guard<std::mutex> lock(making_);
      const Uninterrupted whole;
      if (!made_)
        packed_ = std::make_unique<SlicedEntries<S, T, I>>(A, parts_);
      made_ = true;
    }
    return *packed_;
  }

  void by_rows(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, int threads) const {
    const int parts = threads == 1 || A.nnz() < kSerialEntries ? 1 : parts_;
    const i64 piece = rows_of_a_piece(A.m, A.nnz());
    const auto rows = [&](i64 begin, i64 end) {
      in_pieces(begin, end, piece, [&](i64 from, i64 to) {
        with_column(o.y, o.alpha, o.beta, [&](auto column) {
          csr_column(from, to, A.indptr, A.indices, A.data, o.x.data, ordered_dot{}, column);
        });
      });
    };
    if (parts == 1)
      return rows(0, A.m);
    for_parts(parts, [&](int part) { rows(bounds_[part], bounds_[part + 1]); });
  }
};

} // namespace wl
