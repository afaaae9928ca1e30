// Pattern SpMV: a matrix of a grid repeats the same column offsets (column - row) along whole lines
// of rows. A run of such rows stores its offsets once; the values stay in the CSR matrix, in its
// order. What is read falls from 12 bytes an entry to 8 (double, int32), and new values cost
// nothing.
#pragma once

#include "spmv_csr.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace wl {

// Rows a run must have on average. 7-point stencils on lines of 16 points (5.3 rows a run) take
// 0.70 of the CSR kernel's time, and on lines of 100 points 0.66; lines of 8 points (2.7) about
// 0.86.
constexpr i64 kMinRowsPerRun = 4;

// The table of offsets must stay in half of a 32 KB level-1 cache.
constexpr std::size_t kMaxOffsets = 2048;

// As kCsrAhead: on the 27-point stencil 3.88 ms at 256, 3.23 at 512 and 2.87 at 1024.
constexpr i64 kPatternAhead = 1024;

// Rows [run_end[q - 1], run_end[q]) have columns row + offsets[pattern_ptr[id] : pattern_ptr[id +
// 1]] where id = run_pattern[q].
template <class I>
struct RowPatterns {
  std::vector<I> run_end;
  std::vector<std::int32_t> run_pattern;
  std::vector<std::int32_t> pattern_ptr{0};
  std::vector<I> offsets;
};

// The patterns of a CSR matrix, or false where they would not pay: runs are short, or patterns are
// many. It gives up as soon as it knows, so that a matrix with no structure costs a few thousand
// rows.
template <class I>
bool pack_patterns(I m, const I* indptr, const I* indices, RowPatterns<I>& out) {
  constexpr std::size_t kRunsBeforeGivingUp = 1024;
  out = RowPatterns<I>();
  std::unordered_multimap<std::uint64_t, std::int32_t> known;
  for (I row = 0; row < m; ++row) {
    const I* columns = indices + indptr[row];
    const I length = indptr[row + 1] - indptr[row];
    if (row > 0 && length == indptr[row] - indptr[row - 1]) {
      I moved = 0;
      for (I e = 0; e < length; ++e)
        moved += columns[e] != columns[e - length] + 1;
      if (moved == 0) {
        out.run_end.back() = row + 1;
        continue;
      }
    }
    const i64 runs = out.run_end.size() + 1;
    if (runs > static_cast<i64>(kRunsBeforeGivingUp) && runs * kMinRowsPerRun > row)
      return false;

    std::uint64_t hash = 14695981039346656037u; // FNV-1a
    for (I e = 0; e < length; ++e)
      hash = (hash ^ static_cast<std::uint64_t>(columns[e] - row)) * 1099511628211u;
    std::int32_t id = -1;
    const auto range = known.equal_range(hash);
    for (auto it = range.first; it != range.second && id < 0; ++it) {
      const I* offsets = out.offsets.data() + out.pattern_ptr[it->second];
      bool same = out.pattern_ptr[it->second + 1] - out.pattern_ptr[it->second] == length;
      for (I e = 0; same && e < length; ++e)
        same = columns[e] - row == offsets[e];
      if (same)
        id = it->second;
    }
    if (id < 0) {
      if (out.offsets.size() + length > kMaxOffsets)
        return false;
      id = static_cast<std::int32_t>(out.pattern_ptr.size()) - 1;
      known.emplace(hash, id);
      for (I e = 0; e < length; ++e)
        out.offsets.push_back(columns[e] - row);
      out.pattern_ptr.push_back(static_cast<std::int32_t>(out.offsets.size()));
    }
    out.run_end.push_back(row + 1);
    out.run_pattern.push_back(id);
  }
  return static_cast<i64>(out.run_end.size()) * kMinRowsPerRun <= m;
}

namespace detail {

// `rows` consecutive rows of L entries at the same offsets. With L known the offsets become L
// pointers in registers: 1.2 times as fast on 7 points as a loop over the offsets, 1.1 on 27.
template <int L, class S, class T, class I>
inline void pattern_run(i64 rows, const I* offsets, const S* data, const T* x, T* __restrict y,
                        T alpha, T beta) {
  const T* x_at[L];
  for (int e = 0; e < L; ++e)
    x_at[e] = x + offsets[e];
  for (i64 row = 0; row < rows; ++row, data += L) {
    T sums[2] = {};
#pragma GCC unroll 32
    for (int e = 0; e < L; ++e) {
      if (e % 8 == 0)
        prefetch_eight(data + e + kPatternAhead);
      multiply_add(sums[e % 2], raised<T>(data[e]), x_at[e][row]);
    }
    update(y[row], sums[0] + sums[1], alpha, beta);
  }
}

template <class S, class T, class I>
inline void pattern_run(i64 rows, i64 length, const I* offsets, const S* data, const T* x,
                        T* __restrict y, T alpha, T beta) {
  for (i64 row = 0; row < rows; ++row, data += length) {
    const T sum = dot_by_loads(data, offsets, length, x + row,
                               [=](i64 e) { prefetch_eight(data + e + kPatternAhead); });
    update(y[row], sum, alpha, beta);
  }
}

} // namespace detail

// y = alpha * A x + beta * y for rows [row_begin, row_end); data is that of the CSR matrix, and of
// indptr only the first row's is read. x, y, beta as in csr_spmv_rows.
template <class S, class T, class I>
void pattern_spmv_rows(I row_begin, I row_end, const I* indptr, const RowPatterns<I>& patterns,
                       const S* data, const T* x, i64 ldx, T* y, i64 ldy, i64 k, T alpha, T beta) {
  if (row_begin >= row_end)
    return;
  data += indptr[row_begin];
  std::size_t run = std::upper_bound(patterns.run_end.begin(), patterns.run_end.end(), row_begin) -
                    patterns.run_end.begin();
  for (I row = row_begin; row < row_end; ++run) {
    const i64 rows = std::min(row_end, patterns.run_end[run]) - row;
    const std::int32_t* bounds = &patterns.pattern_ptr[patterns.run_pattern[run]];
    const i64 length = bounds[1] - bounds[0];
    const I* offsets = patterns.offsets.data() + bounds[0];
    if (k == 1 && ldx == 1 && ldy == 1) {
      const T* x_run = x + row;
      T* y_run = y + row;
      switch (length) {
#define WL_PATTERN_RUN(L)                                                                          \
  case L:                                                                                          \
    detail::pattern_run<L>(rows, offsets, data, x_run, y_run, alpha, beta);                        \
    break
        WL_PATTERN_RUN(2);
        WL_PATTERN_RUN(3);
        WL_PATTERN_RUN(4);
        WL_PATTERN_RUN(5);
        WL_PATTERN_RUN(6);
        WL_PATTERN_RUN(7);
        WL_PATTERN_RUN(8);
        WL_PATTERN_RUN(9);
        WL_PATTERN_RUN(27);
#undef WL_PATTERN_RUN
      default:
        detail::pattern_run(rows, length, offsets, data, x_run, y_run, alpha, beta);
      }
    } else {
      for (i64 r = 0; r < rows; ++r)
        detail::row_times_columns(
            length, data + r * length, 1, [=](i64 e) { return row + r + offsets[e]; }, x, ldx,
            y + (row + r) * ldy, k, alpha, beta);
    }
    data += rows * length;
    row += static_cast<I>(rows);
  }
}

} // namespace wl
