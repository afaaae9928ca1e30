// CSR matrices of grids on CPU devices: runs of rows that repeat the same column offsets (column -
// row) read these from a small table, so an entry costs 8 bytes and not 12. The values stay in the
// matrix.
#pragma once
#include "rows_cpu.hpp"

namespace wl {

// As the omp backend has measured it for its own.
constexpr i64 PATTERN_AHEAD = 1024;

// `rows` neighbouring rows of L entries at the same offsets, from row `first`; x is that of it.
template <int L, class S, class T, class Column>
WL_DEVICE void pattern_run(i64 rows, const i32* offsets, const S* data, const T* x, i64 first,
                           const Column& y) {
  const T* x_at[L];
  for (int e = 0; e < L; ++e)
    x_at[e] = x + offsets[e];
  for (i64 row = 0; row < rows; ++row, data += L) {
    T sums[2] = {};
#pragma unroll
    for (int e = 0; e < L; ++e) {
      if (e % 8 == 0)
        prefetch_eight(data + e + PATTERN_AHEAD);
      multiply_add(sums[e % 2], raised<T>(data[e]), x_at[e][row]);
    }
    y.put(first + row, sums[0] + sums[1]);
  }
}

// The same for rows of any length.
template <class S, class T, class Column>
WL_DEVICE void pattern_run(i64 rows, i32 length, const i32* offsets, const S* data, const T* x,
                           i64 first, const Column& y) {
  switch (length) {
#define WL_PATTERN_RUN(L)                                                                          \
  case L:                                                                                          \
    pattern_run<L>(rows, offsets, data, x, first, y);                                              \
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
    for (i64 r = 0; r < rows; ++r) {
      T sum{};
      for (i32 e = 0; e < length; ++e)
        multiply_add(sum, raised<T>(data[r * length + e]), x[r + offsets[e]]);
      y.put(first + r, sum);
    }
  }
}

struct shifted {
  const i32* offsets;
  i64 row;
  WL_DEVICE i64 operator()(i64 e) const { return row + offsets[e]; }
};

// Run q has rows run_end[q - 1] .. run_end[q], whose offsets are pattern_ptr[id] .. pattern_ptr[id
// + 1] with id = run_pattern[q]. Part p has runs from first_run[p] and rows from cut_row[p].
template <class T, class I, class S>
WL_DEVICE void csr_patterns(const item& it, i64 parts, const i64* cut_row, const i32* first_run,
                            const i32* run_end, const i32* run_pattern, const i32* pattern_ptr,
                            const i32* offsets, i64 k, const I* indptr, const S* values,
                            mat<const T> x, mat<T> y, T alpha, T beta) {
  for (i64 p = it.block(); p < parts; p += it.blocks()) {
    i64 row = cut_row[p];
    const i64 last = cut_row[p + 1];
    const S* data = values + indptr[row];
    for (i64 run = first_run[p]; row < last; ++run) {
      const i64 rows = (run_end[run] < last ? run_end[run] : last) - row;
      const i32 id = run_pattern[run], length = pattern_ptr[id + 1] - pattern_ptr[id];
      const i32* const at = offsets + pattern_ptr[id];
      if (k == 1 && x.ld == 1) {
        const T* const of_x = x.data + row;
        with_column(y, alpha, beta, [&](const auto& column) {
          pattern_run(rows, length, at, data, of_x, row, column);
        });
      } else {
        for (i64 r = 0; r < rows; ++r)
          for_column_tiles(
              k, row_times_columns<T, shifted, S>{
                     length, data + r * length, 1, {at, row + r}, x, &y(row + r, 0), alpha, beta});
      }
      data += rows * length;
      row += rows;
    }
  }
}

} // namespace wl
