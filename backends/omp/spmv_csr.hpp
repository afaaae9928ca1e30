// CSR SpMV: y = alpha * A x + beta * y for blocks of rows, and how entries are shared by threads.
#pragma once

#include "spmv_common.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#include <immintrin.h>
#endif

namespace wl {

// Entries between the one in use and the one prefetched. On two cores of a Xeon (Granite Rapids)
// the 7-point stencil takes 2.12 ms at 256 and 1.87 at 768 (1536: 1.89). No prefetch: 4.65.
constexpr i64 kCsrAhead = 768;

// What a row costs besides its entries, in entries: its indptr, its y and the end of its loop.
constexpr i64 kRowCost = 2;

// A longer row may be shared by several threads; a shorter one unbalances them by less than a
// microsecond.
constexpr i64 kCutRow = 4096;

namespace detail {

// Entries of a row on average up to which rows are added up in order.
constexpr i64 kShortRow = 8;

// sum_e data[e] * x[columns[e]] over e < n by one load an x; ahead(e) is called once for eight
// entries, and prefetches. In microseconds, two threads of a Zen 4 (2026-11), with two sums, with
// four, and by the gathers below: 56 entries a row 589, 582, 886; 14 98, 93, 152; 5 to 9 75, 75,
// 106.
template <class S, class T, class I, class Ahead>
inline T dot_by_loads(const S* data, const I* columns, i64 n, const T* x, Ahead&& ahead) {
  T sums[4] = {};
  i64 e = 0;
  for (; e + 8 <= n; e += 8) {
    ahead(e);
    for (int j = 0; j < 8; ++j)
      multiply_add(sums[j % 4], raised<T>(data[e + j]), x[columns[e + j]]);
  }
  if (e < n)
    ahead(e);
  if (e + 4 <= n) {
    for (int j = 0; j < 4; ++j)
      multiply_add(sums[j], raised<T>(data[e + j]), x[columns[e + j]]);
    e += 4;
  }
  for (; e < n; ++e)
    multiply_add(sums[0], raised<T>(data[e]), x[columns[e]]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The same in the order of the entries, for rows of a few: its one loop ends once where the branch
// predictor must guess, dot_by_loads up to three times. In microseconds, one thread of a Cascade
// Lake (2026-11), by loads and in order: 20,000 rows of 3, 5, 7 and 9 entries 137, 132, 170, 189
// and 103, 119, 146, 181; of 5 random ones 324 and 288; but 2,900 rows of 10 random ones 42 and 48.
template <class S, class T, class I>
inline T dot_in_order(const S* data, const I* columns, i64 n, const T* x) {
  prefetch_eight(data + kCsrAhead);
  prefetch_eight(columns + kCsrAhead);
  T sum(0);
  for (i64 e = 0; e < n; ++e)
    multiply_add(sum, raised<T>(data[e]), x[columns[e]]);
  return sum;
}

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

// A Zen makes a gather of more steps than the loads it stands for. Of a slice whose x is in the
// cache it takes 1.2 to 1.8 times as long (see spmv_sellp.hpp). So does a Cascade Lake, which has
// no VBMI2: 1.4 times as long for eight entries, and as long for the five of a stencil's row.
inline const bool gathers_are_fast = [] {
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") != 0 && __builtin_cpu_supports("avx512vbmi2") != 0;
}();

inline __m512d gather(__mmask8 mask, const std::int32_t* indices, const double* x) {
  return _mm512_mask_i32gather_pd(_mm512_setzero_pd(), mask,
                                  _mm256_maskz_loadu_epi32(mask, indices), x, 8);
}

inline __m512d gather(__mmask8 mask, const i64* indices, const double* x) {
  return _mm512_mask_i64gather_pd(_mm512_setzero_pd(), mask,
                                  _mm512_maskz_loadu_epi64(mask, indices), x, 8);
}

// The values in `mask`, in double. The forms with a mask throughout: see below.
inline __m512d eight(__mmask8 mask, const double* data) {
  return _mm512_maskz_loadu_pd(mask, data);
}

inline __m512d eight(__mmask8 mask, const float* data) {
  return _mm512_maskz_cvtps_pd(mask, _mm256_maskz_loadu_ps(mask, data));
}

inline __m512d eight(__mmask8 mask, const half* data) {
  const __m128i bits = _mm_maskz_loadu_epi16(mask, data);
  return _mm512_maskz_cvtps_pd(mask, _mm256_maskz_cvtph_ps(mask, bits));
}

inline __m512d eight(__mmask8 mask, const bfloat* data) {
  const __m256i bits = _mm256_cvtepu16_epi32(_mm_maskz_loadu_epi16(mask, data));
  return _mm512_maskz_cvtps_pd(mask, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)));
}

// Neither _mm512_reduce_add_pd nor the unmasked extraction: g++ 12 says that they use an
// uninitialized value (its bug 105593).
inline double sum_of(__m512d v) {
  const __m256d four = _mm256_add_pd(_mm512_maskz_extractf64x4_pd(0xf, v, 0),
                                     _mm512_maskz_extractf64x4_pd(0xf, v, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

// A masked gather has no loop for the tail of a row, whose length the branch predictor must guess.
// In milliseconds on two cores of a Xeon (Granite Rapids), against two sums by loads built for
// AVX2: R-MAT 2.32 for 2.91, 7-point stencil 1.97 for 2.89, 27-point 4.41 for 4.63, but 5-point
// 1.68 for 1.52.
template <class S, class I>
inline double dot_by_gathers(const S* data, const I* indices, i64 n, const double* x) {
  __m512d sum = _mm512_setzero_pd();
  for (i64 e = 0; e < n; e += 8) {
    prefetch_eight(data + e + kCsrAhead);
    prefetch_eight(indices + e + kCsrAhead);
    const __mmask8 mask = n - e >= 8 ? 0xff : (1u << (n - e)) - 1;
    sum = _mm512_fmadd_pd(eight(mask, data + e), gather(mask, indices + e, x), sum);
  }
  return sum_of(sum);
}

#endif

// sum_e data[e] * x[indices[e]] over e < n; `few` says that most rows have few entries.
template <class S, class T, class I>
inline T row_dot(const S* data, const I* indices, i64 n, const T* x, bool few = false) {
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)
  if constexpr (std::is_same_v<T, double>)
    if (gathers_are_fast)
      return dot_by_gathers(data, indices, n, x);
#endif
  if (few)
    return dot_in_order(data, indices, n, x);
  return dot_by_loads(data, indices, n, x, [=](i64 e) {
    prefetch_eight(data + e + kCsrAhead);
    prefetch_eight(indices + e + kCsrAhead);
  });
}

// y[0:k] = alpha * (entries [begin, end)) * x + beta * y[0:k], the entries being of one row.
template <class S, class T, class I>
inline void csr_row(i64 begin, i64 end, const I* indices, const S* data, const T* x, i64 ldx, T* y,
                    i64 k, T alpha, T beta) {
  const I* columns = indices + begin;
  if (k == 1 && ldx == 1)
    update(*y, row_dot(data + begin, columns, end - begin, x), alpha, beta);
  else
    row_times_columns(
        end - begin, data + begin, 1, [=](i64 e) { return columns[e]; }, x, ldx, y, k, alpha, beta);
}

} // namespace detail

// y = alpha * A x + beta * y for rows [row_begin, row_end); x is (n, k) and y is (m, k), row-major
// with row strides ldx and ldy. beta == 0 never reads y. `few`: see has_short_rows.
template <class S, class T, class I>
void csr_spmv_rows(I row_begin, I row_end, const I* indptr, const I* indices, const S* data,
                   const T* x, i64 ldx, T* y, i64 ldy, i64 k, T alpha, T beta, bool few = false) {
  if (row_begin >= row_end)
    return;
  i64 begin = indptr[row_begin];
  if (k == 1 && ldx == 1) {
    for (I row = row_begin; row < row_end; ++row) {
      const i64 end = indptr[row + 1];
      detail::update(y[row * ldy],
                     detail::row_dot(data + begin, indices + begin, end - begin, x, few), alpha,
                     beta);
      begin = end;
    }
    return;
  }
  for (I row = row_begin; row < row_end; ++row) {
    const i64 end = indptr[row + 1];
    detail::csr_row(begin, end, indices, data, x, ldx, y + row * ldy, k, alpha, beta);
    begin = end;
  }
}

// Whether rows are added up in the order of their entries: they are short, and none is so long that
// the sum would wait for itself. A fact of the whole matrix, so that a result does not depend on
// which thread has which rows.
template <class I>
bool has_short_rows(const I* indptr, I m) {
  if (indptr[m] - indptr[0] > detail::kShortRow * i64(m))
    return false;
  I longest = 0;
  for (I row = 0; row < m; ++row)
    longest = std::max<I>(longest, indptr[row + 1] - indptr[row]);
  return longest <= 4 * detail::kShortRow;
}

// Where a part of a matrix begins: rows before `row` and entries before `entry` belong to earlier
// parts. entry > indptr[row] says that the row is cut here.
template <class I>
struct CsrCut {
  I row;
  i64 entry;
};

// parts + 1 cuts that give each part an equal share of entries and rows. Only rows longer than
// kCutRow are cut inside. Costs a binary search per cut, so it needs no plan.
template <class I>
std::vector<CsrCut<I>> balanced_cuts(const I* indptr, I m, int parts) {
  const auto cost_before = [=](i64 row) { return indptr[row] + kRowCost * row; };
  std::vector<CsrCut<I>> cuts(parts + 1);
  cuts[0] = {0, indptr[0]};
  cuts[parts] = {m, indptr[m]};
  const i64 first = cost_before(0), total = cost_before(m) - first;
  for (int part = 1; part < parts; ++part) {
    const i64 target = first + total / parts * part + total % parts * part / parts;
    i64 row = cuts[part - 1].row, above = m;
    while (row < above) {
      const i64 middle = row + (above - row) / 2;
      if (cost_before(middle + 1) <= target)
        row = middle + 1;
      else
        above = middle;
    }
    i64 entry = indptr[row];
    if (row < m && indptr[row + 1] - entry > kCutRow)
      entry = std::min<i64>(entry + (target - cost_before(row)), indptr[row + 1]);
    cuts[part] = {static_cast<I>(row), std::max(entry, cuts[part - 1].entry)};
  }
  return cuts;
}

// Row boundaries (parts + 1 of them) for kernels that never cut a row.
template <class I>
std::vector<I> balanced_rows(const I* indptr, I m, int parts) {
  std::vector<I> rows;
  for (const CsrCut<I>& cut : balanced_cuts(indptr, m, parts))
    rows.push_back(cut.row);
  return rows;
}

// The rows and pieces of rows between two cuts. The first piece of a cut row goes to y; a later one
// goes to carry[0:k], which csr_spmv_carry adds when all parts are done.
// rows(first, last) does whole rows.
template <class S, class T, class I, class Rows>
void csr_spmv_part(CsrCut<I> from, CsrCut<I> to, const I* indptr, const I* indices, const S* data,
                   const T* x, i64 ldx, T* y, i64 ldy, i64 k, T alpha, T beta, T* carry,
                   Rows&& rows) {
  I row = from.row;
  if (from.entry > indptr[row]) {
    const bool ends_here = to.row > row;
    const i64 end = ends_here ? static_cast<i64>(indptr[row + 1]) : to.entry;
    detail::csr_row(from.entry, end, indices, data, x, ldx, carry, k, alpha, T(0));
    if (!ends_here)
      return;
    ++row;
  }
  rows(row, to.row);
  if (to.entry > indptr[to.row])
    detail::csr_row(indptr[to.row], to.entry, indices, data, x, ldx, y + to.row * ldy, k, alpha,
                    beta);
}

// Adds the later pieces of cut rows in the order of the parts, so a result depends on the number of
// parts and on nothing else.
template <class T, class I>
void csr_spmv_carry(const std::vector<CsrCut<I>>& cuts, const I* indptr, T* y, i64 ldy, i64 k,
                    const T* carry) {
  for (std::size_t part = 1; part + 1 < cuts.size(); ++part)
    if (cuts[part].entry > indptr[cuts[part].row])
      for (i64 c = 0; c < k; ++c)
        y[cuts[part].row * ldy + c] += carry[part * k + c];
}

} // namespace wl
