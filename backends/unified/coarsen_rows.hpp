// Functions and products that the functors of the multigrid setup share. They round alike on all
// executors.
#pragma once
#include "unified/rounding.hpp"
#include "unified/status.hpp"

namespace wl {

template <class R>
WL_DEVICE R rounded_square(R a) {
  return rounded_product(a, a);
}
template <class R>
WL_DEVICE R rounded_square(complex<R> a) {
  return rounded_product(a.re, a.re) + rounded_product(a.im, a.im);
}

// re a| + |im a|, computed without a square root and without a product.
template <class R>
WL_DEVICE R size_of(R a) {
  return a < R(0) ? -a : a;
}
template <class R>
WL_DEVICE R size_of(complex<R> a) {
  return size_of(a.re) + size_of(a.im);
}

// -Re(a conj(d)); for real numbers the sign of d replaces d. It measures how strongly an entry
// couples two unknowns.
template <class R>
WL_DEVICE R coupling(R a, R d) {
  return d < R(0) ? a : -a;
}
template <class R>
WL_DEVICE R coupling(complex<R> a, complex<R> d) {
  return -(rounded_product(a.re, d.re) + rounded_product(a.im, d.im));
}

// The conjugate of the sign (phase) of a number; 1 for the number 0.
template <class R>
WL_DEVICE R conjugate_sign(R a) {
  return a < R(0) ? R(-1) : R(1);
}
template <class R>
WL_DEVICE complex<R> conjugate_sign(complex<R> a) {
  const R length = magnitude(a);
  return length > R(0) ? conj(a) / length : complex<R>(R(1));
}

// A permutation of the 32-bit numbers: the finalizer of MurmurHash3.
WL_DEVICE i64 hashed(i64 number) {
  u32 x = u32(number) + 0x9E3779B9u;
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  return i64(x ^ (x >> 16));
}

// The rows of a matrix, and values that are derived from a row.
template <class T, class I>
struct matrix_rows {
  const I *begin, *end, *indices;
  const T* values;

  WL_DEVICE T diagonal(i64 i) const {
    T d(0);
    for (I e = begin[i]; e < end[i]; ++e)
      if (i64(indices[e]) == i)
        d += values[e];
    return d;
  }
  WL_DEVICE real_t<T> size(i64 i) const {
    real_t<T> s(0);
    for (I e = begin[i]; e < end[i]; ++e)
      s += size_of(values[e]);
    return s;
  }
  // Calls use(entry) for the strong entries of a row.
  template <class Use>
  WL_DEVICE void for_strong(i64 i, real_t<T> theta, Use&& use) const {
    const T d = diagonal(i);
    real_t<T> largest(0);
    for (I e = begin[i]; e < end[i]; ++e)
      if (i64(indices[e]) != i) {
        const real_t<T> s = coupling(values[e], d);
        largest = s > largest ? s : largest;
      }
    const real_t<T> least = theta * largest;
    for (I e = begin[i]; e < end[i]; ++e)
      if (i64(indices[e]) != i) {
        const real_t<T> s = coupling(values[e], d);
        if (s > real_t<T>(0) && s >= least)
          use(e);
      }
  }
  // Calls use(entry) for the entries that are strong relative to both diagonal entries.
  template <class Use>
  WL_DEVICE void for_coupled(i64 i, const T* d, real_t<T> theta, Use&& use) const {
    const real_t<T> least = theta * theta * size_of(d[i]);
    for (I e = begin[i]; e < end[i]; ++e) {
      const real_t<T> s = size_of(values[e]);
      if (i64(indices[e]) != i && s > real_t<T>(0) && s * s >= least * size_of(d[indices[e]]))
        use(e);
    }
  }
};

} // namespace wl
