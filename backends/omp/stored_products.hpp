// Products of sparse and dense matrices with types that are known at run time only. The entries for
// Python and the handlers for XLA share them. Distances are in elements.
#pragma once

#include <memory>
#include <stdexcept>

#include "omp/half.hpp"
#include "omp/operand.hpp"
#include "omp/pattern_plan.hpp"

namespace wl {

enum class StoredType { float16, bfloat16, float32, float64 };

// Blocks one after the other, any distance apart: T[b,n,k] with adjacent columns.
template <class S>
struct Batch {
  S* data;
  i64 step, ld;
  mat<S> operator[](i64 i) const { return {data + i * step, ld}; }
};

// The arrays of a pattern.
template <class I>
struct PatternArrays {
  using Index = I;
  i64 m, n, nnz;
  const I *indptr, *indices;
};

// A CSR pattern with indices of 32 or of 64 bits.
struct StoredPattern {
  i64 m, n, nnz;
  const void *indptr, *indices;
  bool is_wide;

  template <class I>
  PatternArrays<I> of() const {
    return {m, n, nnz, static_cast<const I*>(indptr), static_cast<const I*>(indices)};
  }
};

// Like Batch, of elements of a type that is known at run time.
struct StoredBatch {
  void* data;
  i64 step, ld;

  template <class S>
  Batch<S> of() const {
    return {static_cast<S*>(data), step, ld};
  }
};

// C = A B
struct StoredSpmm {
  StoredType type;
  StoredPattern A;
  const PatternPlan* plan;
  bool by_reduction;
  i64 blocks, columns;
  StoredBatch values, B, C;
};
void compute(const StoredSpmm& product, int threads);

// S = C B^T on the pattern of A
struct StoredSddmm {
  StoredType type;
  StoredPattern A;
  const PatternPlan* plan;
  i64 blocks, columns;
  StoredBatch C, B, S;
};
void compute(const StoredSddmm& product, int threads);

// E = f(alpha C B^T on the pattern of A) D; `values.data` may be nullptr.
struct StoredFusedmm {
  StoredType type;
  StoredPattern A;
  const PatternPlan* plan;
  i64 blocks, inner, columns;
  StoredBatch values, C, B, D, E;
  double alpha;
  const char* edge;
};
void compute(const StoredFusedmm& product, int threads);

// P = the softmax of S over the entries of each row
struct StoredSoftmax {
  StoredType type;
  StoredPattern A;
  const PatternPlan* plan;
  i64 blocks;
  StoredBatch S, P;
};
void compute(const StoredSoftmax& softmax, int threads);

// y = the sums of X over the entries of each row
struct StoredRowSum {
  StoredType type;
  StoredPattern A;
  const PatternPlan* plan;
  i64 blocks;
  StoredBatch X, y;
};
void compute(const StoredRowSum& sum, int threads);

// y = the sums over the entries of each row of products of two numbers each: of X at the places
// `first`, of the type of the pattern's indices, and of Z at the columns
struct StoredContraction {
  StoredType type;
  StoredPattern A;
  const void* first;
  const PatternPlan* plan;
  i64 blocks;
  StoredBatch X, Z, y;
};
void compute(const StoredContraction& contraction, int threads);

// X = y of the row of each entry
struct StoredSpread {
  StoredType type;
  StoredPattern A;
  const PatternPlan* plan;
  i64 blocks;
  StoredBatch y, X;
};
void compute(const StoredSpread& spread, int threads);

// Calls body(S()) with the C++ type of stored values.
template <class Body>
void with_stored(StoredType type, Body&& body) {
  switch (type) {
  case StoredType::float16:
    return body(half());
  case StoredType::bfloat16:
    return body(bfloat());
  case StoredType::float32:
    return body(float());
  case StoredType::float64:
    return body(double());
  }
  throw std::invalid_argument("no stored type has this number");
}

// Calls body(S(), A) with the C++ type of stored values and the pattern in C++ types.
template <class Body>
void with_stored(StoredType type, const StoredPattern& A, Body&& body) {
  with_stored(type, [&](auto value) {
    if (A.is_wide)
      body(value, A.of<i64>());
    else
      body(value, A.of<i32>());
  });
}

// Below this many products a parallel region costs more than it saves. An entry takes as long as 16
// products even if it has fewer: R-MAT of 2^14 rows, 25,000 entries, 2 columns takes one thread of
// a Zen 4 56 to 75 microseconds, two 28 to 38 (2026-11-22).
constexpr i64 kSerialProducts = 100000, kEntryProducts = 16;

inline int threads_for(i64 entries, i64 columns, int threads) {
  return entries * std::max(columns, kEntryProducts) < kSerialProducts ? 1 : threads;
}

// Calls body(block, row, begin, end) for all rows of all blocks, on up to `threads` threads, with
// `columns` numbers of an entry each. A plan that cuts rows does not suit it.
template <class I, class Body>
void for_whole_rows(const PatternPlan& plan, const PatternArrays<I>& A, i64 blocks, i64 columns,
                    int threads, Body&& body) {
  for (i64 b = 0; b < blocks; ++b)
    plan.for_parts(threads_for(A.nnz, columns, threads), [&](const Part& part) {
      for (i64 row = part.first; row < part.last; ++row)
        body(b, row, i64(A.indptr[row]), i64(A.indptr[row + 1]));
    });
}

} // namespace wl
