// SELL SpMV: rows sorted by length within windows, in slices of eight with entries stored column by
// column, so that eight rows advance together even if they are short.
//
// Entry e of sorted row i is at slice_ptr[i / 8] + 8 * e + i % 8; sorted row i is row perm[i] of
// the matrix and has lengths[i] entries. The slots that pad a slice are never added: zero times an
// x that is NaN or infinite would be NaN. They hold column 0, which may be read.
//
// A row of more than kCutRow entries is sorted as if it were empty: in a slice it would leave seven
// lanes idle, and at the end the other threads. The pieces of such rows are stored one after the
// other.
#pragma once

#include "omp/parallel.hpp"
#include "omp/row_cuts.hpp"

#include <algorithm>
#include <vector>

namespace wl {

// Eight doubles fill an AVX-512 register and two AVX2 ones. Sixteen is not faster (R-MAT, 2^18
// rows, 3.8 million entries: 1.99 ms both) and pads twice as much (5.2 % for 2.4 %).
constexpr int kSliceHeight = 8;

// As AHEAD; 256 to 768 are within 5 % of each other.
constexpr i64 kSellAhead = 512;

// Shares of slices a thread takes in turn: the first slices have the longest rows and the most
// padding. On R-MAT 16 a thread take 1.91 ms where one takes 2.02; 64 are no better than 16.
constexpr int kSellSharesPerThread = 16;

template <class I>
inline I slice_count(I m) {
  return (m + kSliceHeight - 1) / kSliceHeight;
}

// The entries of a row that lie in slices.
template <class I>
inline I sliced_length(const I* indptr, I row) {
  const I length = indptr[row + 1] - indptr[row];
  return length > kCutRow ? 0 : length;
}

// Rows are sorted within windows with about this number of entries: the entries of a window stay in
// the second-level cache while slices are filled, and so do its elements of y.
constexpr i64 kWindowEntries = 1 << 16;
constexpr i64 kLeastWindow = 1024;

// Windows are given up if they need this share of the entries more slots than a sort of all rows
// together: a few very long rows in each window pad its first slices.
constexpr double kMorePadding = 0.02;

// Puts the rows [begin, end) in the order of falling length; equal ones stay in order.
template <class I>
void sort_by_length(I begin, I end, const I* indptr, I* perm, I* lengths) {
  I longest = 0;
  for (I row = begin; row < end; ++row)
    longest = std::max(longest, sliced_length(indptr, row));
  std::vector<I> place(static_cast<std::size_t>(longest) + 2);
  for (I row = begin; row < end; ++row)
    ++place[longest - sliced_length(indptr, row) + 1];
  for (std::size_t at = 1; at < place.size(); ++at)
    place[at] += place[at - 1];
  for (I row = begin; row < end; ++row) {
    const I length = sliced_length(indptr, row);
    const I i = begin + place[longest - length]++;
    perm[i] = row;
    lengths[i] = length;
  }
}

// Fills slice_ptr[slice_count(m) + 1] from the lengths of rows in their order; the last value is
// the number of slots to allocate.
template <class I>
void count_slots(I m, const I* lengths, i64* slice_ptr) {
  slice_ptr[0] = 0;
  for (I slice = 0; slice < slice_count(m); ++slice)
    slice_ptr[slice + 1] =
        slice_ptr[slice] + static_cast<i64>(lengths[slice * kSliceHeight]) * kSliceHeight;
}

// Fills perm[m], lengths[m] and slice_ptr[slice_count(m) + 1].
template <class I>
void sell_order(I m, const I* indptr, I* perm, I* lengths, i64* slice_ptr, int threads) {
  const i64 mean = std::max<i64>(1, m > 0 ? (indptr[m] - indptr[0]) / m : 1);
  const i64 wide = std::max(kLeastWindow, kWindowEntries / mean) / kSliceHeight * kSliceHeight;
  const i64 windows = (m + wide - 1) / wide;
  for_each_in_turn(windows, 1, threads, [&](i64 window) {
    const i64 begin = window * wide, end = std::min<i64>(begin + wide, m);
    sort_by_length(static_cast<I>(begin), static_cast<I>(end), indptr, perm, lengths);
  });
  count_slots(m, lengths, slice_ptr);
  if (windows < 2)
    return;
  i64 sliced = 0;
  for (I row = 0; row < m; ++row)
    sliced += lengths[row];
  const i64 slots = slice_ptr[slice_count(m)];
  if (static_cast<double>(slots - sliced) <= kMorePadding * static_cast<double>(sliced))
    return;
  sort_by_length(I(0), m, indptr, perm, lengths);
  count_slots(m, lengths, slice_ptr);
}

// Slices by which rows are prefetched: rows of one length are far apart in the matrix, where the
// processor prefetches none. A million entries at random, eight a row, take 0.9 ms instead of 1.4
// (two threads of an EPYC, 2026-11); 2 and 8 slices are as good.
constexpr i64 kSlicesAhead = 4;

// Stores CSR entries (indices or data: V) in their slots. New values need only this step again.
template <class V, class I>
void sell_fill(I m, const I* indptr, const V* entries, const I* perm, const I* lengths,
               const i64* slice_ptr, V* slots, int threads) {
  constexpr int kSlicesAtATime = 64;
  for_each_in_turn(slice_count(m), kSlicesAtATime, threads, [&](i64 slice) {
    const I first = static_cast<I>(slice) * kSliceHeight;
    const int rows = std::min<I>(kSliceHeight, m - first);
    for (i64 i = first + kSlicesAhead * kSliceHeight, end = std::min<i64>(i + rows, m); i < end;
         ++i) {
      const V* row = entries + indptr[perm[i]];
      __builtin_prefetch(row);
      __builtin_prefetch(row + std::max<I>(lengths[i], 1) - 1);
    }
    if (rows < kSliceHeight || lengths[first] != lengths[first + kSliceHeight - 1])
      std::fill(slots + slice_ptr[slice], slots + slice_ptr[slice + 1], V{});
    for (int h = 0; h < rows; ++h) {
      V* slot = slots + slice_ptr[slice] + h;
      const V* row = entries + indptr[perm[first + h]];
      for (I e = 0; e < lengths[first + h]; ++e)
        slot[static_cast<i64>(e) * kSliceHeight] = row[e];
    }
  });
}

namespace detail {

// The dot products with x, of n elements, of the eight rows of a slice, in order of decreasing
// length. After the end of the shortest row only the first `active` rows continue; columns are
// still processed in the order in which they are stored.
template <class S, class T, class I>
inline void slice_dot(const S* data, const I* indices, const I* lengths, const T* x, i64, T* sums) {
  constexpr int H = kSliceHeight;
  const i64 full = static_cast<i64>(lengths[H - 1]) * H;
  // Indexed by constants only, or the compiler would not keep them in registers.
  T partial[H] = {};
  for (i64 p = 0; p < full; p += H) {
    prefetch_eight(data + p + kSellAhead);
    prefetch_eight(indices + p + kSellAhead);
#pragma omp simd
    for (int h = 0; h < H; ++h)
      multiply_add(partial[h], raised<T>(data[p + h]), x[indices[p + h]]);
  }
  std::copy(partial, partial + H, sums);
  int active = H;
  for (i64 e = lengths[H - 1]; e < lengths[0]; ++e) {
    while (lengths[active - 1] <= e)
      --active;
    const i64 p = e * H;
    prefetch_eight(data + p + kSellAhead);
    prefetch_eight(indices + p + kSellAhead);
    for (int h = 0; h < active; ++h)
      multiply_add(sums[h], raised<T>(data[p + h]), x[indices[p + h]]);
  }
}

#if defined(WL_GATHERS)

// The size of x in bytes up to which eight loads are faster than a gather on a Zen with a
// second-level cache of a megabyte. Where x is not in the cache, a gather has more of its loads in
// flight. In microseconds, two threads of a Zen 4 (2026-11), loads and gathers: x of 200 KB 50 and
// 76, of 780 KB 154 and 192, but of 2 MB 2880 and 2400, and of 4 MB 3010 and 2000.
constexpr i64 kLoadedBytes = i64(1) << 20;

template <class I>
inline __m512d eight_loads(const double* x, const I* c) {
  return _mm512_set_pd(x[c[7]], x[c[6]], x[c[5]], x[c[4]], x[c[3]], x[c[2]], x[c[1]], x[c[0]]);
}

// take(mask, columns) is x at the columns of the lanes in `mask`, and anything in the others.
template <class S, class I, class Take>
inline __m512d slice_sums(const S* data, const I* indices, const I* lengths, Take&& take) {
  __m512d sum = _mm512_setzero_pd();
  int active = kSliceHeight;
  for (i64 e = 0; e < lengths[0]; ++e) {
    while (lengths[active - 1] <= e)
      --active;
    const i64 p = e * kSliceHeight;
    prefetch_eight(data + p + kSellAhead);
    prefetch_eight(indices + p + kSellAhead);
    const __mmask8 mask = (1u << active) - 1;
    sum = _mm512_mask3_fmadd_pd(eight(mask, data + p), take(mask, indices + p), sum, mask);
  }
  return sum;
}

// g++ 12 makes half-width code of the loop above and keeps its sums in memory: 2.62 ms on
// R-MAT, built for AVX2, against 2.20 of this.
template <class S, class I>
inline void slice_dot(const S* data, const I* indices, const I* lengths, const double* x, i64 n,
                      double* sums) {
  static_assert(kSliceHeight == 8, "a slice is one register wide");
  const bool gathers = gathers_are_fast || n * i64(sizeof(double)) > kLoadedBytes;
  const __m512d sum =
      gathers
          ? slice_sums(data, indices, lengths,
                       [=](__mmask8 mask, const I* columns) { return gather(mask, columns, x); })
          : slice_sums(data, indices, lengths,
                       [=](__mmask8, const I* columns) { return eight_loads(x, columns); });
  _mm512_storeu_pd(sums, sum);
}

#endif

// The product for long rows in single precision: see long_sums.hpp.
template <class S, class T, class I>
WL_NOINLINE void long_slice_dot(const S* data, const I* indices, const I* lengths, const T* x,
                                i64 n, T* sums) {
  constexpr int H = kSliceHeight;
  long_sum<T> totals[H] = {};
  for (i64 first = 0; first < lengths[0]; first += PIECE_OF_SUM) {
    I left[H];
    for (int h = 0; h < H; ++h)
      left[h] = static_cast<I>(std::clamp<i64>(lengths[h] - first, 0, PIECE_OF_SUM));
    slice_dot(data + first * H, indices + first * H, left, x, n, sums);
    for (int h = 0; h < H; ++h)
      totals[h].add(sums[h]);
  }
  for (int h = 0; h < H; ++h)
    sums[h] = totals[h].value();
}

} // namespace detail

// y = alpha A x + beta y for the rows of slices [slice_begin, slice_end).
template <class S, class T, class I>
void sell_spmv_slices(i64 slice_begin, i64 slice_end, i64 m, i64 n, const i64* slice_ptr,
                      const I* lengths, const I* perm, const I* indices, const S* data,
                      mat<const T> x, mat<T> y, i64 k, T alpha, T beta) {
  constexpr int H = kSliceHeight;
  for (i64 slice = slice_begin; slice < slice_end; ++slice) {
    const i64 first = slice * H, rows = std::min<i64>(H, m - first), begin = slice_ptr[slice];
    if (k != 1 || x.ld != 1 || rows < H) {
      for (i64 h = 0; h < rows; ++h) {
        const I* columns = indices + begin + h;
        row_times_columns(
            lengths[first + h], data + begin + h, H, [=](i64 e) { return i64(columns[e * H]); }, x,
            &y(perm[first + h], 0), k, alpha, beta);
      }
      continue;
    }
    T sums[H];
    if (sums_in_pieces<T> && lengths[first] > PIECE_OF_SUM)
      detail::long_slice_dot(data + begin, indices + begin, lengths + first, x.data, n, sums);
    else
      detail::slice_dot(data + begin, indices + begin, lengths + first, x.data, n, sums);
    for (int h = 0; h < H; ++h)
      update(y(perm[first + h], 0), sums[h], alpha, beta);
  }
}

} // namespace wl
