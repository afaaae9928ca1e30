// What csr.spmv keeps of a matrix between products: who computes which rows, and with which kernel.
#pragma once

#include <memory>

#include "call.hpp"
#include "parallel.hpp"
#include "spmv_csr.hpp"
#include "spmv_pattern.hpp"

namespace wl {

// The arrays of a CSR matrix at the moment of a product.
template <class T, class I>
struct CsrArrays {
  I m;
  const I *indptr, *indices;
  const T* data;
};

// A product's operands.
template <class T>
struct SpmvOperands {
  mat<const T> x;
  mat<T> y;
  i64 k;
  T alpha, beta;
};

// One kernel made ready for one matrix.
class CsrState {
public:
  virtual ~CsrState() = default;
};

template <class T, class I>
class CsrStateOf : public CsrState {
public:
  virtual void spmv(const CsrArrays<T, I>& A, const SpmvOperands<T>& o, int threads) const = 0;
};

// Rows of equal shares of entries; long rows are cut.
template <class T, class I>
class CsrRows final : public CsrStateOf<T, I> {
public:
  CsrRows(const CsrArrays<T, I>& A, int parts) : cuts_(balanced_cuts(A.indptr, A.m, parts)) {}

  void spmv(const CsrArrays<T, I>& A, const SpmvOperands<T>& o, int threads) const override {
    const int parts = static_cast<int>(cuts_.size()) - 1;
    if (parts == 1 || threads == 1 || A.indptr[A.m] * o.k < kSerialEntries) {
      csr_spmv_rows(I(0), A.m, A.indptr, A.indices, A.data, o.x.data, o.x.ld, o.y.data, o.y.ld, o.k,
                    o.alpha, o.beta);
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
      : patterns_(std::move(patterns)), bounds_(balanced_rows(A.indptr, A.m, parts)) {}

  void spmv(const CsrArrays<T, I>& A, const SpmvOperands<T>& o, int threads) const override {
    const int parts = static_cast<int>(bounds_.size()) - 1;
    if (parts == 1 || threads == 1 || A.indptr[A.m] * o.k < kSerialEntries) {
      rows(A, o, 0, A.m);
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

} // namespace wl
