// The largest and the smallest of several numbers, as NumPy's maximum and minimum define them.
#pragma once
#include "unified/types.hpp"

namespace wl {

template <class R>
WL_DEVICE bool is_nan(R a) {
  return a != a;
}
template <class R>
WL_DEVICE bool is_nan(complex<R> a) {
  return is_nan(a.re) || is_nan(a.im);
}

// Complex numbers are compared by their real parts, then by their imaginary parts.
template <class R>
WL_DEVICE bool is_less(R a, R b) {
  return a < b;
}
template <class R>
WL_DEVICE bool is_less(complex<R> a, complex<R> b) {
  return a.re < b.re || (a.re == b.re && a.im < b.im);
}

// "Adding" keeps the larger (or smaller) number; the result is NaN once a number is NaN. Zeroed
// memory is the neutral element.
template <class T, bool LARGEST>
struct extreme {
  T value;
  i32 some;

  WL_DEVICE extreme& operator+=(extreme o) {
    if (o.some && (!some || replaces(o.value)))
      *this = o;
    return *this;
  }

private:
  WL_DEVICE bool replaces(T other) const {
    if (is_nan(value))
      return false;
    return is_nan(other) || (LARGEST ? is_less(value, other) : is_less(other, value));
  }
};

} // namespace wl
