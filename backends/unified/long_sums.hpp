// Sums of many terms in single precision.
//
// If terms are added up one after the other, a sum of ones stops at 2^24, and a sum of a million
// equal terms has an error of 1 %. So terms are added up in pieces, and the sums of the pieces are
// added up together with the rounding error of each addition (Knuth (1998), "The Art of Computer
// Programming" 2, section 4.2.2, theorem B). This needs no double precision, and a sum of at most
// PIECE_OF_SUM terms costs only one more comparison.
#pragma once
#include "unified/types.hpp"

namespace wl {

// The number of terms that are added up one after the other: 256 equal terms have an error of at
// most 2e-6.
constexpr i64 PIECE_OF_SUM = 256;

// Whether long sums of T are computed in pieces: double precision has enough digits without them.
template <class T>
constexpr bool sums_in_pieces = same<real_t<T>, float>::value;

// The low part of an infinite sum is NaN.
template <class R>
WL_DEVICE R sum_of_parts(R high, R low) {
  return low == low ? high + low : high;
}
template <class R>
WL_DEVICE complex<R> sum_of_parts(complex<R> high, complex<R> low) {
  return {sum_of_parts(high.re, low.re), sum_of_parts(high.im, low.im)};
}

// A sum as two numbers: the rounded sum, and the sum of the rounding errors. T may be a vector of
// numbers that are added up elementwise.
template <class T>
struct long_sum {
  T high, low;

  WL_DEVICE void add(T term) {
    const T sum = high + term, added = sum - high;
    low += (high - (sum - added)) + (term - added);
    high = sum;
  }
  template <class F>
  WL_DEVICE void scale(F factor) {
    high = high * factor;
    low = low * factor;
  }
  WL_DEVICE T value() const { return sum_of_parts(high, low); }
};

// The sum of terms [0, count) of T, where sum_of(begin, end) adds up some of them; `lanes` is the
// number of sums that it accumulates in parallel.
template <class T, class SumOf>
WL_DEVICE T sum_of_terms(i64 count, i64 lanes, const SumOf& sum_of) {
  if constexpr (sums_in_pieces<T>)
    if (count > PIECE_OF_SUM * lanes) {
      long_sum<T> total{};
      for (i64 begin = 0; begin < count; begin += PIECE_OF_SUM * lanes) {
        const i64 end = begin + PIECE_OF_SUM * lanes;
        total.add(sum_of(begin, end < count ? end : count));
      }
      return total.value();
    }
  return sum_of(i64(0), count);
}

} // namespace wl
