// Products of formats with padded rows: ELL and SELL-P. Padding has index -1 and does not touch x.
#pragma once
#include "cpu/columns.hpp"

namespace wl {

// The number of rows of a slice of SELL-P, unless the user chose another one.
constexpr int USUAL_SLICE = 32;

// The largest number of rows that are summed together; wider slices go row by row.
constexpr int MOST_ROWS = PADDED_ROWS < USUAL_SLICE ? USUAL_SLICE : PADDED_ROWS;

// The distance in entries between the multiplied and the prefetched entry. Prefetching nearly
// halves the time of matrices from memory and costs little where all is in the cache.
constexpr i64 PADDED_AHEAD = 512;

// An entry times its element of x. A value that was read for padding, from any address, is dropped.
template <class T, class I>
inline T padded_product(T value, I column, T of_x) {
  T product(0);
  multiply_add(product, value, of_x);
  return column < 0 ? T(0) : product;
}

// sums[r] = sum of data[j stride + r] x[indices[j stride + r]] over j < width, of `rows` rows; of
// ROWS if that is not 0. An index is made valid before x is read.
template <int ROWS, class T, class I>
inline void padded_sums(i64 rows, i64 width, i64 stride, const T* data, const I* indices,
                        const T* x, T* sums) {
  const i64 count = ROWS > 0 ? ROWS : rows;
  T part[ROWS > 0 ? ROWS : MOST_ROWS];
  for (i64 r = 0; r < count; ++r)
    part[r] = T(0);
  for (i64 j = 0; j < width; ++j, data += stride, indices += stride) {
    if constexpr (ROWS == USUAL_SLICE)
      for (i64 r = 0; r < ROWS; r += 8) {
        prefetch_eight(data + PADDED_AHEAD + r);
        prefetch_eight(indices + PADDED_AHEAD + r);
      }
    WL_VECTORIZED
    for (i64 r = 0; r < count; ++r) {
      const I column = indices[r];
      part[r] += padded_product(data[r], column, x[column < 0 ? 0 : column]);
    }
  }
  for (i64 r = 0; r < count; ++r)
    sums[r] = part[r];
}

// The same of any number of long rows: see long_sums.hpp.
template <class T, class I>
inline void long_padded_sums(i64 rows, i64 width, i64 stride, const T* data, const I* indices,
                             const T* x, T* sums) {
  long_sum<T> totals[MOST_ROWS];
  for (i64 r = 0; r < rows; ++r)
    totals[r] = {};
  for (i64 j = 0; j < width; j += PIECE_OF_SUM) {
    padded_sums<0>(rows, width - j < PIECE_OF_SUM ? width - j : PIECE_OF_SUM, stride,
                   data + j * stride, indices + j * stride, x, sums);
    for (i64 r = 0; r < rows; ++r)
      totals[r].add(sums[r]);
  }
  for (i64 r = 0; r < rows; ++r)
    sums[r] = totals[r].value();
}

// sums[r] += value[r] x[column[r]] of ROWS adjacent rows; returns whether one of them has an entry.
// If an index is wider than a value, compilers turn a single loop into branches that are
// mispredicted: rows of 1 to 26 entries in float32 with 64-bit indices then take 1.9 ms, and 0.7
// with two loops. For other types two loops take 1.1 times as long, because they store numbers one
// by one and load them together.
template <int ROWS, class T, class I>
inline bool add_padded(const T* value, const I* column, const T* x, T* sums) {
  I all = I(-1);
  if constexpr (sizeof(I) > sizeof(T)) {
    T of_x[ROWS];
    for (int r = 0; r < ROWS; ++r) {
      const I c = column[r];
      all &= c;
      of_x[r] = x[c < 0 ? 0 : c];
    }
    WL_VECTORIZED
    for (int r = 0; r < ROWS; ++r) {
      sums[r] += padded_product(value[r], column[r], of_x[r]);
    }
  } else {
    WL_VECTORIZED
    for (int r = 0; r < ROWS; ++r) {
      const I c = column[r];
      sums[r] += padded_product(value[r], c, x[c < 0 ? 0 : c]);
      all &= c;
    }
  }
  return all >= 0;
}

// The same for padding that follows the entries of each row: the loop over a group of adjacent rows
// ends when all of its rows have ended. The next entries of a group are one row of the array away,
// where hardware does not prefetch: so they are prefetched here. 1.25 million rows of 1 to 26
// random entries take 0.8 to 1.0 ms; with all padding read 2.0, and with groups that end early but
// no prefetch 1.6 (two threads of a Zen 5, 2026-11, float64).
//
// LONG: in pieces, see long_sums.hpp.
template <bool LONG, class T, class I>
inline void uneven_sums(i64 rows, i64 width, i64 stride, const T* data, const I* indices,
                        const T* x, T* sums) {
  constexpr int GROUP = 16;
  [[maybe_unused]] long_sum<T> totals[LONG ? MOST_ROWS : 1];
  for (i64 r = 0; LONG && r < rows; ++r)
    totals[r] = {};
  int remaining[MOST_ROWS / GROUP], count = int(rows / GROUP);
  for (int g = 0; g < count; ++g)
    remaining[g] = g * GROUP;
  const i64 whole = i64(count) * GROUP;
  for (i64 r = 0; r < whole; ++r)
    sums[r] = T(0);
  const T* values = data;
  const I* columns = indices;
  for (i64 j = 0; j < width && count > 0; ++j, values += stride, columns += stride) {
    if constexpr (LONG)
      if (j > 0 && j % PIECE_OF_SUM == 0)
        for (int i = 0; i < count; ++i)
          for (int r = remaining[i]; r < remaining[i] + GROUP; ++r) {
            totals[r].add(sums[r]);
            sums[r] = T(0);
          }
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      const int first = remaining[i];
      const T* const value = values + first;
      const I* const column = columns + first;
      for (int r = 0; r < GROUP; r += 8) {
        prefetch_eight(value + stride + r);
        prefetch_eight(column + stride + r);
      }
      remaining[kept] = first;
      kept += add_padded<GROUP>(value, column, x, sums + first);
    }
    count = kept;
  }
  if constexpr (LONG) {
    for (i64 r = 0; r < whole; ++r) {
      totals[r].add(sums[r]);
      sums[r] = totals[r].value();
    }
    long_padded_sums(rows - whole, width, stride, data + whole, indices + whole, x, sums + whole);
  } else {
    padded_sums<0>(rows - whole, width, stride, data + whole, indices + whole, x, sums + whole);
  }
}

// The same as padded_rows, of long rows: see long_sums.hpp.
template <class T, class I, class Row>
WL_NOINLINE inline void long_padded_rows(i64 rows, i64 lanes, i64 width, i64 stride, const T* data,
                                         const I* indices, mat<const T> x, mat<T> y, i64 k, T alpha,
                                         T beta, Row row_of) {
  if (k == 1 && x.ld == 1 && lanes <= MOST_ROWS) {
    T sums[MOST_ROWS];
    if (lanes > USUAL_SLICE)
      uneven_sums<true>(lanes, width, stride, data, indices, x.data, sums);
    else
      long_padded_sums(lanes, width, stride, data, indices, x.data, sums);
    for (i64 r = 0; r < rows; ++r)
      update(y(row_of(r), 0), sums[r], alpha, beta);
    return;
  }
  for (i64 r = 0; r < rows && !interrupted(); ++r) {
    const I* const columns = indices + r;
    long_row_times_columns<true>(
        width, data + r, stride, [=](i64 j) { return i64(columns[j * stride]); }, x,
        &y(row_of(r), 0), k, alpha, beta);
  }
}

// y(row_of(r), :) = alpha (padded row r) x + beta y(row_of(r), :) for r < rows; `lanes` rows are
// stored entry by entry.
template <class T, class I, class Row>
inline void padded_rows(i64 rows, i64 lanes, i64 width, i64 stride, const T* data, const I* indices,
                        mat<const T> x, mat<T> y, i64 k, T alpha, T beta, const Row& row_of) {
  if constexpr (sums_in_pieces<T>)
    if (width > PIECE_OF_SUM)
      return long_padded_rows(rows, lanes, width, stride, data, indices, x, y, k, alpha, beta,
                              row_of);
  if (k == 1 && x.ld == 1 && lanes <= MOST_ROWS) {
    T sums[MOST_ROWS];
    if (lanes == USUAL_SLICE)
      padded_sums<USUAL_SLICE>(lanes, width, stride, data, indices, x.data, sums);
    else if (PADDED_ROWS < MOST_ROWS && lanes == PADDED_ROWS)
      padded_sums<PADDED_ROWS>(lanes, width, stride, data, indices, x.data, sums);
    else if (lanes > USUAL_SLICE)
      uneven_sums<false>(lanes, width, stride, data, indices, x.data, sums);
    else
      padded_sums<0>(lanes, width, stride, data, indices, x.data, sums);
    for (i64 r = 0; r < rows; ++r)
      update(y(row_of(r), 0), sums[r], alpha, beta);
    return;
  }
  for (i64 r = 0; r < rows && !interrupted(); ++r) {
    const I* const columns = indices + r;
    short_row_times_columns<true>(
        width, data + r, stride, [=](i64 j) { return i64(columns[j * stride]); }, x,
        &y(row_of(r), 0), k, alpha, beta);
  }
}

template <class T, class I>
struct ell_arrays {
  i64 m, n, width;
  const I* indices;
  const T* data;

  i64 tiles() const { return (m + PADDED_ROWS - 1) / PADDED_ROWS; }
};

// The rows of tiles [begin, end). If n is 0, all is padding and there is no x to read.
template <class T, class I>
inline void ell_tiles(const ell_arrays<T, I>& A, i64 begin, i64 end, mat<const T> x, mat<T> y,
                      i64 k, T alpha, T beta) {
  for (i64 tile = begin; tile < end; ++tile) {
    const i64 first = tile * PADDED_ROWS, left = A.m - first;
    const i64 rows = left < PADDED_ROWS ? left : PADDED_ROWS;
    padded_rows(rows, rows, A.n == 0 ? 0 : A.width, A.m, A.data + first, A.indices + first, x, y, k,
                alpha, beta, [=](i64 r) { return first + r; });
  }
}

template <class T, class I>
struct sellp_arrays {
  i64 m, n, slices, slice_size;
  const I *slice_ptr, *permutation, *indices;
  const T* data;
};

// The rows of slices [begin, end).
template <class T, class I>
inline void sellp_slices(const sellp_arrays<T, I>& A, i64 begin, i64 end, mat<const T> x, mat<T> y,
                         i64 k, T alpha, T beta) {
  const i64 size = A.slice_size;
  for (i64 slice = begin; slice < end; ++slice) {
    const i64 at = A.slice_ptr[slice], left = A.m - slice * size;
    const i64 width = A.n == 0 ? 0 : (A.slice_ptr[slice + 1] - at) / size;
    const I* const rows = A.permutation + slice * size;
    padded_rows(left < size ? left : size, size, width, size, A.data + at, A.indices + at, x, y, k,
                alpha, beta, [=](i64 r) { return i64(rows[r]); });
  }
}

} // namespace wl
