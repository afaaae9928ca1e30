// Elementwise functions of values, and reductions over all of them. See
// wollemi.core.operations.values.
#pragma once
#include "unified/extremes.hpp"
#include "unified/status.hpp"

namespace wl {

template <class T>
struct values_magnitude {
  mat<const T> x;
  mat<real_t<T>> y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    return y(i, c) = magnitude(x(i, c)), sum{};
  }
};

template <class T>
struct values_real {
  mat<const T> x;
  mat<real_t<T>> y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    return y(i, c) = real(x(i, c)), sum{};
  }
};

template <class R>
WL_DEVICE R imaginary(R) {
  return R(0);
}
template <class R>
WL_DEVICE R imaginary(complex<R> a) {
  return a.im;
}

template <class T>
struct values_imaginary {
  mat<const T> x;
  mat<real_t<T>> y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    return y(i, c) = imaginary(x(i, c)), sum{};
  }
};

// Integer powers of complex numbers with exponents up to this size are computed by products, as in
// NumPy.
constexpr int kMultiplied = 100;

template <class R>
WL_DEVICE R to_power(R a, R exponent) {
  if (exponent == R(1))
    return a;
  if (exponent == R(2))
    return a * a;
  return power(a, exponent);
}
template <class R>
WL_DEVICE complex<R> to_power(complex<R> a, complex<R> exponent) {
  if (exponent == complex<R>(R(0)))
    return R(1);
  if (a == complex<R>(R(0))) {
    const R nothing = R(0) / a.re; // NaN for both signs of zero
    return exponent.re > R(0) ? complex<R>(R(0)) : complex<R>(nothing, nothing);
  }
  const R size = magnitude(exponent.re);
  if (exponent.im == R(0) && size <= R(kMultiplied) && size == R(int(size))) {
    complex<R> made(R(1)), factor = a;
    for (int left = int(size); left > 0; left /= 2) {
      if (left % 2)
        made = made * factor;
      if (left > 1)
        factor = factor * factor;
    }
    return exponent.re < R(0) ? complex<R>(R(1)) / made : made;
  }
  const complex<R> log(logarithm(magnitude(a)), angle(a.im, a.re));
  const complex<R> exact = exponent * log;
  const R grown = exponential(exact.re);
  return {grown * cosine(exact.im), grown * sine(exact.im)};
}

template <class T>
struct values_power {
  mat<const T> x;
  mat<T> y;
  T exponent;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    return y(i, c) = to_power(x(i, c), exponent), sum{};
  }
};

template <class T>
struct values_total {
  mat<const T> x;
  T* value;
  WL_SUM(T);

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const { return x(i, c); }
  WL_DEVICE void finish(i64 c, sum s) const { value[c] = s; }
};

template <class T>
struct values_largest {
  mat<const T> x;
  T* value;
  WL_SUM(extreme<T, true>);

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const { return {x(i, c), 1}; }
  WL_DEVICE void finish(i64 c, sum s) const { value[c] = s.some ? s.value : T(0); }
};

template <class T>
struct values_smallest {
  mat<const T> x;
  T* value;
  WL_SUM(extreme<T, false>);

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const { return {x(i, c), 1}; }
  WL_DEVICE void finish(i64 c, sum s) const { value[c] = s.some ? s.value : T(0); }
};

} // namespace wl
