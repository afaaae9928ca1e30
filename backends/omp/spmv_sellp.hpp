// SELL SpMV: rows sorted by length, in slices of eight whose entries are stored column by column,
// so that eight rows advance together however short they are.
//
// Entry e of sorted row i lies at slice_ptr[i / 8] + 8 * e + i % 8; sorted row i is row perm[i] of
// the matrix and has lengths[i] entries. The slots that pad a slice are never read: zero times an
// x that is NaN or infinite would spoil the rows they pad.
#pragma once

#include "spmv_csr.hpp"

#include <vector>

namespace wl {

// Eight doubles fill an AVX-512 register and two AVX2 ones. Sixteen is not faster (R-MAT, 2^18
// rows, 3.8 million entries: 1.99 ms both) and pads twice as much (5.2 % for 2.4 %).
constexpr int kSliceHeight = 8;

// As kCsrAhead; 256 to 768 are within 5 % of each other.
constexpr i64 kSellAhead = 512;

// Shares of slices a thread takes in turn: the first slices have the longest rows and the most
// padding. On R-MAT 16 a thread take 1.91 ms where one takes 2.02; 64 are no better than 16.
constexpr int kSellSharesPerThread = 16;

// A share's least work: several microseconds, where taking it costs a tenth of one.
constexpr i64 kSellShareEntries = 8192;

template <class I>
inline I slice_count(I m) {
  return (m + kSliceHeight - 1) / kSliceHeight;
}

// Fills perm[m] and lengths[m] (rows by falling length, equal ones in order) and
// slice_ptr[slice_count(m) + 1], whose last value is the number of slots to allocate.
template <class I>
void sell_order(I m, const I* indptr, I* perm, I* lengths, i64* slice_ptr) {
  I longest = 0;
  for (I row = 0; row < m; ++row)
    longest = std::max<I>(longest, indptr[row + 1] - indptr[row]);
  std::vector<I> place(static_cast<std::size_t>(longest) + 2);
  for (I row = 0; row < m; ++row)
    ++place[longest - (indptr[row + 1] - indptr[row]) + 1];
  for (std::size_t at = 1; at < place.size(); ++at)
    place[at] += place[at - 1];
  for (I row = 0; row < m; ++row) {
    const I length = indptr[row + 1] - indptr[row];
    const I i = place[longest - length]++;
    perm[i] = row;
    lengths[i] = length;
  }
  slice_ptr[0] = 0;
  for (I slice = 0; slice < slice_count(m); ++slice)
    slice_ptr[slice + 1] =
        slice_ptr[slice] + static_cast<i64>(lengths[slice * kSliceHeight]) * kSliceHeight;
}

// Puts CSR entries (indices or data: V) in their slots. New values need only this again.
template <class V, class I>
void sell_fill(I m, const I* indptr, const V* entries, const I* perm, const I* lengths,
               const i64* slice_ptr, V* slots) {
  std::fill(slots, slots + slice_ptr[slice_count(m)], V(0));
  for (I i = 0; i < m; ++i) {
    V* slot = slots + slice_ptr[i / kSliceHeight] + i % kSliceHeight;
    const V* row = entries + indptr[perm[i]];
    for (I e = 0; e < lengths[i]; ++e)
      slot[static_cast<i64>(e) * kSliceHeight] = row[e];
  }
}

namespace detail {

// The dot products with x of the eight rows of a slice, whose lengths do not rise. After the
// shortest row the rows still going on are the first `active` ones; the columns are still taken in
// the order they are stored.
template <class T, class I>
inline void slice_dot(const T* data, const I* indices, const I* lengths, const T* x, T* sums) {
  constexpr int H = kSliceHeight;
  const i64 full = static_cast<i64>(lengths[H - 1]) * H;
  // Indexed by constants only, or the compiler would not keep them in registers.
  T partial[H] = {};
  for (i64 p = 0; p < full; p += H) {
    prefetch_eight(data + p + kSellAhead);
    prefetch_eight(indices + p + kSellAhead);
#pragma omp simd
    for (int h = 0; h < H; ++h)
      multiply_add(partial[h], data[p + h], x[indices[p + h]]);
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
      multiply_add(sums[h], data[p + h], x[indices[p + h]]);
  }
}

#if defined(__AVX512F__) && defined(__AVX512VL__)

// g++ 12 makes half-width code of the loop above and keeps its sums in memory: 2.62 ms on
// R-MAT, built for AVX2, against 2.20 of this.
template <class I>
inline void slice_dot(const double* data, const I* indices, const I* lengths, const double* x,
                      double* sums) {
  static_assert(kSliceHeight == 8, "a slice is one register wide");
  __m512d sum = _mm512_setzero_pd();
  int active = 8;
  for (i64 e = 0; e < lengths[0]; ++e) {
    while (lengths[active - 1] <= e)
      --active;
    const i64 p = e * 8;
    prefetch_eight(data + p + kSellAhead);
    prefetch_eight(indices + p + kSellAhead);
    const __mmask8 mask = (1u << active) - 1;
    sum = _mm512_mask3_fmadd_pd(_mm512_maskz_loadu_pd(mask, data + p), gather(mask, indices + p, x),
                                sum, mask);
  }
  _mm512_storeu_pd(sums, sum);
}

#endif

} // namespace detail

// y = alpha * A x + beta * y for the rows of slices [slice_begin, slice_end); x, y, beta as in
// csr_spmv_rows.
template <class T, class I>
void sell_spmv_slices(I slice_begin, I slice_end, I m, const i64* slice_ptr, const I* lengths,
                      const I* perm, const I* indices, const T* data, const T* x, i64 ldx, T* y,
                      i64 ldy, i64 k, T alpha, T beta) {
  constexpr int H = kSliceHeight;
  for (I slice = slice_begin; slice < slice_end; ++slice) {
    const I first = slice * H;
    const int rows = std::min<I>(H, m - first);
    const i64 begin = slice_ptr[slice];
    if (k != 1 || ldx != 1 || rows < H) {
      for (int h = 0; h < rows; ++h) {
        const I* columns = indices + begin + h;
        detail::row_times_columns(
            lengths[first + h], data + begin + h, H, [=](i64 e) { return columns[e * H]; }, x, ldx,
            y + perm[first + h] * ldy, k, alpha, beta);
      }
      continue;
    }
    T sums[H];
    detail::slice_dot(data + begin, indices + begin, lengths + first, x, sums);
    for (int h = 0; h < H; ++h)
      detail::update(y[perm[first + h] * ldy], sums[h], alpha, beta);
  }
}

// y = alpha * A x + beta * y with up to `threads` threads. Each slice is summed by one thread in
// one order, so the result does not depend on their number.
template <class T, class I>
void sell_spmv(I m, const i64* slice_ptr, const I* lengths, const I* perm, const I* indices,
               const T* data, const T* x, i64 ldx, T* y, i64 ldy, i64 k, T alpha, T beta,
               int threads) {
  const i64 slices = slice_count(m);
  const i64 work = slice_ptr[slices] * k;
  const i64 most = work < kSerialEntries || threads == 1 ? 1 : threads * kSellSharesPerThread;
  const int shares = static_cast<int>(std::clamp<i64>(work / kSellShareEntries, 1, most));
  const std::vector<i64> bounds = balanced_rows(slice_ptr, slices, shares);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (shares > 1)
  for (int share = 0; share < shares; ++share)
    sell_spmv_slices(static_cast<I>(bounds[share]), static_cast<I>(bounds[share + 1]), m, slice_ptr,
                     lengths, perm, indices, data, x, ldx, y, ldy, k, alpha, beta);
}

} // namespace wl
