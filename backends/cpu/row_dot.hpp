// The product of one sparse row and one contiguous column.
#pragma once
#include "cpu/columns.hpp"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define WL_GATHERS 1
#include <immintrin.h>
#endif

namespace wl {

// The distance in entries between the multiplied and the prefetched entry. On two cores of a Xeon
// (Granite Rapids) the 7-point stencil takes 2.12 ms at 256, 1.87 at 768 and 1.89 at 1536; without
// prefetch 4.65.
constexpr i64 AHEAD = 768;

// The length from which rows are tested for consecutive columns.
constexpr i64 LONG_ROW = 64;

// Whether the columns are consecutive and in order.
template <class I>
WL_DEVICE bool are_neighbours(const I* columns, i64 n) {
  const I first = columns[0];
  if (i64(columns[n - 1]) - i64(first) != n - 1)
    return false;
  I apart = 0;
  WL_VECTORIZED
  for (i64 e = 0; e < n; ++e)
    apart |= columns[e] - first - I(e);
  return apart == 0;
}

// sum_e data[e] x[e] over e < n, for a row of a dense block or of a full band, in vector registers:
// one load per entry instead of three; loads limit the speed of long rows that are in the caches.
template <class S, class T, class Ahead>
WL_DEVICE T dot_of_neighbours(const S* data, i64 n, const T* x, const Ahead& ahead) {
  constexpr i64 piece = 64;
  T sum(0);
  for (i64 begin = 0; begin < n; begin += piece) {
    const i64 count = n - begin < piece ? n - begin : piece;
    for (i64 e = 0; e < count; e += 8)
      ahead(begin + e);
    T part(0);
    WL_SUM_OF_LANES(part)
    for (i64 e = 0; e < count; ++e)
      multiply_add(part, raised<T>(data[begin + e]), x[begin + e]);
    sum += part;
  }
  return sum;
}

// Prefetches entry e + AHEAD of a row that begins at `data` and `indices`. It is not a lambda: g++
// finds that a function which only prefetches has no effect, and drops its calls unless it is
// inlined at once.
template <class S, class I>
struct prefetch_entries {
  const S* data;
  const I* indices;
  WL_DEVICE void operator()(i64 e) const {
    prefetch_eight(data + e + AHEAD);
    prefetch_eight(indices + e + AHEAD);
  }
};

// sum_e data[e] x[columns[e]] over e < n with one load for each x, in ROW_SUMS sums; ahead(e) is
// called once per eight entries, and prefetches. In microseconds, two threads of a Zen 4 (2026-11),
// omp with two sums, with four, and with the gathers below: 56 entries a row 589, 582, 886; 14
// entries 98, 93, 152; 5 to 9 entries 75, 75, 106.
template <class S, class T, class I, class Ahead>
WL_DEVICE T dot_of_piece(const S* data, const I* columns, i64 n, const T* x, const Ahead& ahead) {
  if constexpr (SUMS_LANES && same<T, real_t<T>>::value)
    if (n >= LONG_ROW && are_neighbours(columns, n))
      return dot_of_neighbours(data, n, x + columns[0], ahead);
  T sums[ROW_SUMS] = {};
  i64 e = 0;
  for (; e + 8 <= n; e += 8) {
    ahead(e);
    for (int j = 0; j < 8; ++j)
      multiply_add(sums[j % ROW_SUMS], raised<T>(data[e + j]), x[columns[e + j]]);
  }
  if (e < n)
    ahead(e);
  if (ROW_SUMS > 2 && e + 4 <= n) {
    for (int j = 0; j < 4; ++j)
      multiply_add(sums[j % ROW_SUMS], raised<T>(data[e + j]), x[columns[e + j]]);
    e += 4;
  }
  // g++ would vectorize a loop of unknown length, for at most three entries: without that, a
  // power-law matrix in float32 takes 0.85 of the time.
  WL_UNROLL
  for (int j = 0; j < (ROW_SUMS > 2 ? 3 : 7); ++j) {
    if (e + j >= n)
      break;
    multiply_add(sums[0], raised<T>(data[e + j]), x[columns[e + j]]);
  }
  // Written out: for a loop over the sums, g++ stores them in an array in memory.
  static_assert(ROW_SUMS == 2 || ROW_SUMS == 4, "see the sum of the sums below");
  if constexpr (ROW_SUMS == 4)
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  else
    return sums[0] + sums[1];
}

// Entries from which a row is long: see long_sums.hpp.
constexpr i64 LONG_DOT = PIECE_OF_SUM * ROW_SUMS;

// The same for a long row.
template <class S, class T, class I>
WL_NOINLINE inline T dot_in_pieces(const S* data, const I* columns, i64 n, const T* x) {
  long_sum<T> total{};
  for (i64 e = 0; e < n; e += LONG_DOT) {
    const prefetch_entries<S, I> ahead{data + e, columns + e};
    total.add(dot_of_piece(data + e, columns + e, n - e < LONG_DOT ? n - e : LONG_DOT, x, ahead));
  }
  return total.value();
}

// The same for a row of any length.
template <class S, class T, class I, class Ahead>
WL_DEVICE T dot_by_loads(const S* data, const I* columns, i64 n, const T* x, const Ahead& ahead) {
  if constexpr (sums_in_pieces<T>)
    if (n > LONG_DOT)
      return dot_in_pieces(data, columns, n, x);
  return dot_of_piece(data, columns, n, x, ahead);
}

// The same in the order of the entries, for rows of a few entries: it has one loop end that the
// branch predictor must predict, dot_by_loads up to three. In microseconds, one thread of a Cascade
// Lake (2026-11), by loads and in order: 20,000 rows of 3, 5, 7 and 9 entries 137, 132, 170, 189
// and 103, 119, 146, 181; of 5 random entries 324 and 288; but 2,900 rows of 10 random entries 42
// and 48.
template <class S, class T, class I>
WL_DEVICE T dot_in_order(const S* data, const I* columns, i64 n, const T* x) {
  prefetch_eight(data + AHEAD);
  prefetch_eight(columns + AHEAD);
  T sum(0);
  for (i64 e = 0; e < n; ++e) {
    WL_IN_REGISTER(e); // otherwise g++ vectorizes and unrolls the loop
    multiply_add(sum, raised<T>(data[e]), x[columns[e]]);
  }
  return sum;
}

#if defined(WL_GATHERS)

// On Zen a gather takes more micro-operations than the loads it replaces, and is slower for slices
// with x in the cache (see spmv_sellp.hpp of omp). Cascade Lake, which has no VBMI2, is slower too.
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

// The values in `mask`, in double. All functions here use masked forms: see below.
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

// A masked gather needs no loop for the tail of a row, with an end that would have to be predicted.
// On Granite Rapids it is faster than two sums by loads built for AVX2, except for very short rows
// (5-point stencils).
template <class S, class I>
inline double dot_by_gathers(const S* data, const I* indices, i64 n, const double* x) {
  __m512d sum = _mm512_setzero_pd();
  for (i64 e = 0; e < n; e += 8) {
    prefetch_eight(data + e + AHEAD);
    prefetch_eight(indices + e + AHEAD);
    const __mmask8 mask = n - e >= 8 ? 0xff : (1u << (n - e)) - 1;
    sum = _mm512_fmadd_pd(eight(mask, data + e), gather(mask, indices + e, x), sum);
  }
  return sum_of(sum);
}

#endif

// The functions above as objects.
struct gathered_dot {
  template <class S, class T, class I>
  WL_DEVICE T operator()(const S* data, const I* indices, i64 n, const T* x) const {
#if defined(WL_GATHERS)
    if constexpr (same<T, double>::value)
      return dot_by_gathers(data, indices, n, x);
#endif
    return dot_by_loads(data, indices, n, x, prefetch_entries<S, I>{data, indices});
  }
};
struct loaded_dot {
  template <class S, class T, class I>
  WL_DEVICE T operator()(const S* data, const I* indices, i64 n, const T* x) const {
    return dot_by_loads(data, indices, n, x, prefetch_entries<S, I>{data, indices});
  }
};
struct ordered_dot {
  template <class S, class T, class I>
  WL_DEVICE T operator()(const S* data, const I* indices, i64 n, const T* x) const {
    return dot_in_order(data, indices, n, x);
  }
};

// Calls body(dot) with the function that multiplies rows of T; `few` tells that most rows have few
// entries. The function is chosen once for a run of rows: two tests in each row cost up to 0.3 of
// the time of two entries.
template <class T, class Body>
WL_DEVICE auto with_row_dot(bool few, const Body& body) {
#if defined(WL_GATHERS)
  if constexpr (same<T, double>::value)
    if (gathers_are_fast)
      return body(gathered_dot{});
#endif
  if (few)
    return body(ordered_dot{});
  return body(loaded_dot{});
}

// sum_e data[e] x[indices[e]] over e < n.
template <class S, class T, class I>
WL_DEVICE T row_dot(const S* data, const I* indices, i64 n, const T* x) {
  return with_row_dot<T>(false, [=](auto dot) { return dot(data, indices, n, x); });
}

} // namespace wl
