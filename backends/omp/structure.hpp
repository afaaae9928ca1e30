// Work on the structure of matrices. See wollemi.core.operations.structure.
#pragma once

#include <utility>
#include <vector>

#include "omp/counting.hpp"
#include "omp/csr_arrays.hpp"
#include "omp/row_sums.hpp"
#include "omp/row_cuts.hpp"
#include "cpu/sorted_rows.hpp"

namespace wl {

// Sorts each row by column, equal columns in their old order; order[e] is where entry e was.
template <class T, class I>
void sort_rows(const CsrArrays<T, I>& A, I* indices, T* data, I* order, int threads) {
  const int parts = A.nnz() < kSerialElements ? 1 : threads;
  const std::vector<I> bounds = balanced_rows(A.indptr, static_cast<I>(A.m), parts);
  const i64 piece = rows_of_a_piece(A.m, A.nnz());
  const Huge<I> spare_columns(A.nnz()), spare_order(A.nnz()); // touched by long rows alone
  const unsorted_columns<I> of{A.indices, A.nnz()};
  const placed_columns<I> to{indices, order}, spare{spare_columns.data(), spare_order.data()};
  for_parts(parts, [&](int part) {
    in_pieces(bounds[part], bounds[part + 1], piece, [&](i64 begin, i64 end) {
      sort_rows(begin, end, A.indptr, of, A.data, to, data, spare);
    });
  });
}

// The rows of the transpose: entries by column, and within a column by row.
template <class T, class I>
void transpose(const CsrArrays<T, I>& A, I* indptr, I* indices, T* data, I* order, int threads) {
  counting_sort(A.nnz(), A.n, threads, A.indices, indptr, [&](i64 begin, i64 end, I* places) {
    move_to_columns(begin, end, A.m, A.indptr, A.indices, A.data, places, indices, data, order);
  });
}

// The terms of alpha A + beta B.
template <class T, class I>
struct SumTerms {
  CsrArrays<T, I> A, B;
  T alpha, beta;
  i64 m = A.m, n = A.n;

  i64 work(i64 row) const {
    return A.indptr[row + 1] - A.indptr[row] + (B.indptr[row + 1] - B.indptr[row]);
  }

  template <class Term>
  void visit(i64 row, Term&& term) const {
    for (I e = A.indptr[row]; e < A.indptr[row + 1]; ++e)
      term(A.indices[e], alpha * A.data[e]);
    for (I e = B.indptr[row]; e < B.indptr[row + 1]; ++e)
      term(B.indices[e], beta * B.data[e]);
  }
};

// The values of A B at the positions of C, which has a position for every term. The order of the
// sums is that of the product with a new pattern.
template <class T, class I>
void product_values(const product_terms<T, I>& terms, const CsrArrays<T, I>& C, T* data,
                    int threads) {
  const Huge<i64> counted(terms.m + 1);
  terms_before(terms, threads, counted.data());
  const i64 work = counted.data()[terms.m];
  const int parts = work < kSerialElements ? 1 : threads;
  const std::vector<I> bounds = balanced_rows(C.indptr, static_cast<I>(C.m), parts);
  const i64 piece = rows_of_a_piece(terms.m, work);
  std::vector<Huge<T>> sums;
  for (int part = 0; part < parts; ++part)
    sums.emplace_back(terms.n);
  for_parts(parts, [&](int part) {
    T* const sum = sums[part].data();
    in_pieces(bounds[part], bounds[part + 1], piece, [&](i64 begin, i64 end) {
      value_rows(terms, sum, begin, end, C.indptr, C.indices, data);
    });
  });
}

// The entries of A; entries of one position are added up.
template <class T, class I>
struct OwnTerms {
  CsrArrays<T, I> A;
  i64 m = A.m, n = A.n;

  i64 work(i64 row) const { return A.indptr[row + 1] - A.indptr[row]; }

  template <class Term>
  void visit(i64 row, Term&& term) const {
    for (I e = A.indptr[row]; e < A.indptr[row + 1]; ++e)
      term(A.indices[e], A.data[e]);
  }
};

} // namespace wl
