// Products of rows of a CSR matrix by the column offsets that runs of them repeat.
#pragma once

#include "cpu/find_patterns.hpp"
#include "cpu/patterns.hpp"

#include <algorithm>

namespace wl {

// y = alpha A x + beta y for rows [begin, end); data is that of the CSR matrix, and of indptr only
// the first row's is read.
template <class S, class T, class I>
void pattern_spmv_rows(i64 begin, i64 end, const I* indptr, const RowPatterns<I>& patterns,
                       const S* data, mat<const T> x, mat<T> y, i64 k, T alpha, T beta) {
  if (begin >= end)
    return;
  const auto& ends = patterns.run_end;
  const i64 run = std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin();
  const row_patterns<I, I> table{ends.data(), patterns.run_pattern.data(),
                                 patterns.pattern_ptr.data(), patterns.offsets.data()};
  pattern_rows(begin, end, run, table, data + indptr[begin], x, y, k, alpha, beta);
}

} // namespace wl
