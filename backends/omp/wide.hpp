// Vector registers of the level that a module is built for, in the compiler's own vector types.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#include "omp/arithmetic.hpp"
#include "omp/half.hpp"
#include "unified/types.hpp"

// GCC warns of vectors that functions take or return: a caller built for another level would read
// them from elsewhere. Every caller of these is in the module itself.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace wl {

// Elements of a full register.
template <class T>
constexpr int kLanesOf = VECTOR_BYTES / static_cast<int>(sizeof(T));

namespace detail {

template <class T, int L>
struct wide_of {
  typedef T type __attribute__((vector_size(L * sizeof(T))));
};

template <class T>
struct integer_of;
template <>
struct integer_of<float> {
  using type = i32;
};
template <>
struct integer_of<double> {
  using type = i64;
};

} // namespace detail

template <class T, int L = kLanesOf<T>>
using wide = typename detail::wide_of<T, L>::type;

template <class T, int L = kLanesOf<T>>
inline wide<T, L> load(const T* from) {
  wide<T, L> v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

template <class T, int L = kLanesOf<T>>
inline void save(T* to, const wide<T, L>& v) {
  std::memcpy(to, &v, sizeof(v));
}

// The sum of the lanes, halves first.
template <class T, int L>
inline T sum_of(wide<T, L> v) {
  if constexpr (L == 1) {
    return v[0];
  } else {
    wide<T, L / 2> low, high;
    std::memcpy(&low, &v, sizeof(low));
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof(low), sizeof(high));
    return sum_of<T, L / 2>(low + high);
  }
}

// The largest lane, computed from halves. If a lane is NaN, the result may be any lane.
template <class T, int L>
inline T largest_of(wide<T, L> v) {
  if constexpr (L == 1) {
    return v[0];
  } else {
    wide<T, L / 2> low, high;
    std::memcpy(&low, &v, sizeof(low));
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof(low), sizeof(high));
    return largest_of<T, L / 2>(low > high ? low : high);
  }
}

namespace detail {

// The lanes of `a`, then of `b`, at given places.
template <class T, int L, int... place>
[[gnu::always_inline]] inline wide<T, L> shuffled(const wide<T, L>& a, const wide<T, L>& b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, place...);
#else
  return __builtin_shuffle(a, b, wide<typename integer_of<T>::type, L>{place...});
#endif
}

// For two vectors that hold sums of 2 D lanes each, side by side: the lower D lanes of all of them,
// from `a` and from `b` in turn, plus the upper ones.
template <class T, int L, int D, int... lane>
[[gnu::always_inline]] inline wide<T, L> halves_of(const wide<T, L>& a, const wide<T, L>& b,
                                                   std::integer_sequence<int, lane...>) {
  return shuffled<T, L, (lane / D % 2 * L + lane / D / 2 * 2 * D + lane % D)...>(a, b) +
         shuffled<T, L, (lane / D % 2 * L + lane / D / 2 * 2 * D + lane % D + D)...>(a, b);
}

// The sums of one vector; the result is in its lower half.
template <class T, int L, int D, int... lane>
[[gnu::always_inline]] inline wide<T, L> halves_of(const wide<T, L>& a,
                                                   std::integer_sequence<int, lane...>) {
  return shuffled<T, L, (lane / D * 2 * D + lane % D) % L...>(a, a) +
         shuffled<T, L, (lane / D * 2 * D + lane % D + D) % L...>(a, a);
}

template <class T, int L, int D, int G>
[[gnu::always_inline]] inline void fold(wide<T, L>* v) {
  constexpr std::make_integer_sequence<int, L> lanes;
  if constexpr (G > 1) {
#pragma GCC unroll 8
    for (int g = 0; g < G / 2; ++g)
      v[g] = halves_of<T, L, D>(v[g], v[g + G / 2], lanes);
  } else {
    v[0] = halves_of<T, L, D>(v[0], lanes);
  }
  if constexpr (D > 1)
    fold<T, L, D / 2, (G > 1 ? G / 2 : 1)>(v);
}

} // namespace detail

// to[g] = the sum of the lanes of v[g], g < G, with the additions of sum_of. One by one they cost
// more than the products that they end.
template <class T, int L, int G>
[[gnu::always_inline]] inline void save_sums(T* to, wide<T, L> (&v)[G]) {
  if constexpr (G == 1 || G > L) {
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g)
      to[g] = sum_of<T, L>(v[g]);
  } else {
    detail::fold<T, L, L / 2, G>(v);
    std::memcpy(to, v, G * sizeof(T));
  }
}

namespace detail {

template <class T>
struct exponential;
template <>
struct exponential<float> {
  static constexpr int degree = 7; // 0.35^8 / 8! is below half an ulp
  static constexpr int digits = 23, bias = 127;
  static constexpr float low = -87.0f, high = 88.7f, over_ln2 = 0x1.715476p+0f;
  static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
};
template <>
struct exponential<double> {
  static constexpr int degree = 13;
  static constexpr int digits = 52, bias = 1023;
  static constexpr double low = -708.0, high = 709.7, over_ln2 = 0x1.71547652b82fep+0;
  static constexpr double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
};

// 1 / k!
template <class T>
constexpr T over_factorial[] = {T(1),
                                T(1),
                                T(1.0 / 2),
                                T(1.0 / 6),
                                T(1.0 / 24),
                                T(1.0 / 120),
                                T(1.0 / 720),
                                T(1.0 / 5040),
                                T(1.0 / 40320),
                                T(1.0 / 362880),
                                T(1.0 / 3628800),
                                T(1.0 / 39916800),
                                T(1.0 / 479001600),
                                T(1.0 / 6227020800.0)};

} // namespace detail

// exp of every lane to a few ulps. Subnormal results become 0.
template <class T, int L>
inline wide<T, L> exp_of(wide<T, L> x) {
  using E = detail::exponential<T>;
  using Z = typename detail::integer_of<T>::type;
  const wide<T, L> zero{};
  const auto small = x<E::low, large = x> E::high;
  const wide<T, L> inside = small || large || x != x ? zero : x;
  const wide<T, L> scaled = inside * E::over_ln2;
  const wide<Z, L> n =
      __builtin_convertvector(scaled + (scaled < zero ? zero - T(0.5) : zero + T(0.5)), wide<Z, L>);
  const wide<T, L> turns = __builtin_convertvector(n, wide<T, L>);
  const wide<T, L> r = inside - turns * E::ln2_high - turns * E::ln2_low;
  wide<T, L> power = zero + detail::over_factorial<T>[E::degree];
#pragma GCC unroll 16
  for (int k = E::degree - 1; k >= 0; --k)
    power = power * r + detail::over_factorial<T>[k];
  // 2^n in two factors: n may be one more than the largest exponent.
  const wide<Z, L> half_n = n >> 1, rest = n - half_n;
  wide<T, L> first, second;
  const wide<Z, L> first_bits = (half_n + E::bias) << E::digits;
  const wide<Z, L> second_bits = (rest + E::bias) << E::digits;
  std::memcpy(&first, &first_bits, sizeof(first));
  std::memcpy(&second, &second_bits, sizeof(second));
  wide<T, L> result = power * first * second;
  result = small ? zero : result;
  result = large ? zero + T(__builtin_inf()) : result;
  return x != x ? x : result;
}

} // namespace wl
