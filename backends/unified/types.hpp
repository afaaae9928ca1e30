// Number types and views that all kernels use.
#pragma once
#include "unified/dialect.hpp"

namespace wl {

template <class R>
struct WL_PAIR_ALIGNED(2 * sizeof(R)) complex {
  R re, im;

  complex() = default;
  WL_PAIR_COPIED(complex, re, im)
  WL_DEVICE constexpr complex(R real, R imaginary = R(0)) : re(real), im(imaginary) {}

  WL_DEVICE complex& operator+=(complex o) { return re += o.re, im += o.im, *this; }
  WL_DEVICE complex& operator-=(complex o) { return re -= o.re, im -= o.im, *this; }

  friend WL_DEVICE complex operator+(complex a, complex b) { return {a.re + b.re, a.im + b.im}; }
  friend WL_DEVICE complex operator-(complex a, complex b) { return {a.re - b.re, a.im - b.im}; }
  friend WL_DEVICE complex operator-(complex a) { return {-a.re, -a.im}; }
  friend WL_DEVICE complex operator*(complex a, complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend WL_DEVICE complex operator/(complex a, R b) { return {a.re / b, a.im / b}; }
  // Smith's method: it does not overflow if the quotient does not.
  friend WL_DEVICE complex operator/(complex a, complex b) {
    const R x = b.re < R(0) ? -b.re : b.re, y = b.im < R(0) ? -b.im : b.im;
    if (x == R(0) && y == R(0))
      return {a.re / x, a.im / x}; // infinite as in NumPy; Smith's quotient would be NaN
    if (x >= y) {
      const R q = b.im / b.re, d = b.re + b.im * q;
      return {(a.re + a.im * q) / d, (a.im - a.re * q) / d};
    }
    const R q = b.re / b.im, d = b.re * q + b.im;
    return {(a.re * q + a.im) / d, (a.im * q - a.re) / d};
  }
  friend WL_DEVICE bool operator==(complex a, complex b) { return a.re == b.re && a.im == b.im; }
  friend WL_DEVICE bool operator!=(complex a, complex b) { return !(a == b); }
};

template <class T>
struct real_of {
  using type = T;
};
template <class R>
struct real_of<complex<R>> {
  using type = R;
};
template <class T>
using real_t = typename real_of<T>::type;

template <class R>
WL_DEVICE R conj(R a) {
  return a;
}
template <class R>
WL_DEVICE complex<R> conj(complex<R> a) {
  return {a.re, -a.im};
}
template <class R>
WL_DEVICE R real(R a) {
  return a;
}
template <class R>
WL_DEVICE R real(complex<R> a) {
  return a.re;
}
template <class R>
WL_DEVICE R square(R a) {
  return a * a;
}
template <class R>
WL_DEVICE R square(complex<R> a) {
  return a.re * a.re + a.im * a.im;
}
// a| without overflow of intermediate results.
template <class R>
WL_DEVICE R magnitude(R a) {
  return a < R(0) ? -a : a;
}
template <class R>
WL_DEVICE R magnitude(complex<R> a) {
  const R x = magnitude(a.re), y = magnitude(a.im), big = x > y ? x : y, small = x > y ? y : x;
  if (!(x == x) || !(y == y))
    return x + y;
  if (big == R(0) || big - big != R(0))
    return big;
  const R q = small / big;
  return big * square_root(R(1) + q * q);
}
template <class R>
WL_DEVICE bool finite(R a) {
  return a - a == R(0);
}
template <class R>
WL_DEVICE bool finite(complex<R> a) {
  return finite(a.re) && finite(a.im);
}

template <class R>
struct epsilon_of;
template <>
struct epsilon_of<float> {
  static constexpr float value = 0x1p-23f;
};
template <>
struct epsilon_of<double> {
  static constexpr double value = 0x1p-52;
};
template <class T>
constexpr real_t<T> epsilon = epsilon_of<real_t<T>>::value;

template <class A, class B>
struct same {
  static constexpr bool value = false;
};
template <class A>
struct same<A, A> {
  static constexpr bool value = true;
};

// A block of vectors: the distance of rows is arbitrary, columns are adjacent.
template <class T>
struct mat {
  T* data;
  i64 ld;
  WL_DEVICE T& operator()(i64 i, i64 c) const { return data[i * ld + c]; }
};

// y = alpha v + beta y. If beta is 0, y is not read, so that a NaN in it does not survive.
template <class T>
WL_DEVICE void store(T& y, T v, T alpha, T beta) {
  y = beta == T(0) ? alpha * v : alpha * v + beta * y;
}

// The sum type of a functor without a sum.
struct none {
  WL_DEVICE none& operator+=(none) { return *this; }
};

} // namespace wl
