// What csr.spmv keeps of a matrix between products: who computes which rows, and with which kernel.
#pragma once

#include <memory>

#include "csr_arrays.hpp"
#include "huge.hpp"
#include "parallel.hpp"
#include "spmv_csr.hpp"
#include "spmv_operands.hpp"
#include "spmv_pattern.hpp"
#include "spmv_sellp.hpp"

namespace wl {

// One kernel made ready for one matrix.
class CsrState {
public:
  virtual ~CsrState() = default;
};

template <class T, class I>
class CsrStateOf : public CsrState {
public:
  virtual void spmv(const CsrArrays<T, I>& A, const SpmvOperands<T>& o, int threads) const = 0;

  // Brings copies of the values in line with the matrix; its pattern is the same.
  virtual void update_values(const CsrArrays<T, I>&) {}
};

// Rows of equal shares of entries; long rows are cut.
template <class T, class I>
class CsrRows final : public CsrStateOf<T, I> {
public:
  CsrRows(const CsrArrays<T, I>& A, int parts)
      : cuts_(balanced_cuts(A.indptr, static_cast<I>(A.m), parts)) {}

  void spmv(const CsrArrays<T, I>& A, const SpmvOperands<T>& o, int threads) const override {
    const int parts = static_cast<int>(cuts_.size()) - 1;
    if (parts == 1 || threads == 1 || A.nnz() * o.k < kSerialEntries) {
      csr_spmv_rows(I(0), static_cast<I>(A.m), A.indptr, A.indices, A.data, o.x.data, o.x.ld,
                    o.y.data, o.y.ld, o.k, o.alpha, o.beta);
      return;
    }
    Scratch<T> carries(parts * o.k);
    T* const carry = carries.data();
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int part = 0; part < parts; ++part)
      csr_spmv_part(cuts_[part], cuts_[part + 1], A.indptr, A.indices, A.data, o.x.data, o.x.ld,
                    o.y.data, o.y.ld, o.k, o.alpha, o.beta, carry + part * o.k);
    csr_spmv_carry(cuts_, A.indptr, o.y.data, o.y.ld, o.k, carry);
  }

private:
  std::vector<CsrCut<I>> cuts_;
};

// Runs of rows with the same offsets.
template <class T, class I>
class CsrPatterns final : public CsrStateOf<T, I> {
public:
  CsrPatterns(const CsrArrays<T, I>& A, RowPatterns<I> patterns, int parts)
      : patterns_(std::move(patterns)),
        bounds_(balanced_rows(A.indptr, static_cast<I>(A.m), parts)) {}

  void spmv(const CsrArrays<T, I>& A, const SpmvOperands<T>& o, int threads) const override {
    const int parts = static_cast<int>(bounds_.size()) - 1;
    if (parts == 1 || threads == 1 || A.nnz() * o.k < kSerialEntries) {
      rows(A, o, 0, static_cast<I>(A.m));
      return;
    }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int part = 0; part < parts; ++part)
      rows(A, o, bounds_[part], bounds_[part + 1]);
  }

private:
  RowPatterns<I> patterns_;
  std::vector<I> bounds_;

  void rows(const CsrArrays<T, I>& A, const SpmvOperands<T>& o, I begin, I end) const {
    pattern_spmv_rows(begin, end, A.indptr, patterns_, A.data, o.x.data, o.x.ld, o.y.data, o.y.ld,
                      o.k, o.alpha, o.beta);
  }
};

// A copy in slices of rows of similar length.
template <class T, class I>
class CsrSell final : public CsrStateOf<T, I> {
public:
  CsrSell(const CsrArrays<T, I>& A, int parts)
      : rows_(A.m), lengths_(A.m), slice_ptr_(slice_count(A.m) + 1) {
    const I m = static_cast<I>(A.m);
    sell_order(m, A.indptr, rows_.data(), lengths_.data(), slice_ptr_.data());
    const i64 slots = slice_ptr_.data()[slice_count(A.m)];
    indices_ = Huge<I>(slots);
    data_ = Huge<T>(slots);
    sell_fill(m, A.indptr, A.indices, rows_.data(), lengths_.data(), slice_ptr_.data(),
              indices_.data());
    update_values(A);
    bounds_ = balanced_rows(slice_ptr_.data(), slice_count(A.m), parts * kSellSharesPerThread);
  }

  void spmv(const CsrArrays<T, I>& A, const SpmvOperands<T>& o, int threads) const override {
    const int shares = static_cast<int>(bounds_.size()) - 1;
    const bool serial = threads == 1 || A.nnz() * o.k < kSerialEntries;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (!serial)
    for (int share = 0; share < shares; ++share)
      sell_spmv_slices(static_cast<I>(bounds_[share]), static_cast<I>(bounds_[share + 1]),
                       static_cast<I>(A.m), slice_ptr_.data(), lengths_.data(), rows_.data(),
                       indices_.data(), data_.data(), o.x.data, o.x.ld, o.y.data, o.y.ld, o.k,
                       o.alpha, o.beta);
  }

  void update_values(const CsrArrays<T, I>& A) override {
    sell_fill(static_cast<I>(A.m), A.indptr, A.data, rows_.data(), lengths_.data(),
              slice_ptr_.data(), data_.data());
  }

private:
  Huge<I> rows_, lengths_, indices_;
  Huge<i64> slice_ptr_;
  Huge<T> data_;
  std::vector<i64> bounds_;
};

} // namespace wl
