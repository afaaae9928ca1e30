// Conversion of blocks of vectors to a lower precision and back. See
// wollemi.core.operations.precision.
#pragma once
#include "unified/status.hpp"

namespace wl {

template <class T>
struct lower_of {
  using type = float;
};
template <class R>
struct lower_of<complex<R>> {
  using type = complex<float>;
};
template <class T>
using lower_t = typename lower_of<T>::type;

template <class R>
WL_DEVICE float lowered(R a) {
  return float(a);
}
template <class R>
WL_DEVICE complex<float> lowered(complex<R> a) {
  return {float(a.re), float(a.im)};
}
template <class T>
WL_DEVICE T widened(float a) {
  return T(a);
}
template <class T>
WL_DEVICE T widened(complex<float> a) {
  return {real_t<T>(a.re), real_t<T>(a.im)};
}
template <class R>
WL_DEVICE R usable_scale(R scale) {
  return scale > R(0) && finite(scale) ? scale : R(1);
}

// A column, and the divisor of its values.
template <class R>
struct scaled_column {
  bool active;
  R scale;
};

template <class T>
struct precision_lower {
  mat<const T> x;
  const real_t<T>* scale;
  mat<lower_t<T>> y;
  using sum = none;
  using column_state = scaled_column<real_t<T>>;

  WL_DEVICE column_state column(i64 c) const { return {true, usable_scale(scale[c])}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& state) const {
    return y(i, c) = lowered(x(i, c) / state.scale), sum{};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

template <class T>
struct precision_raised {
  mat<const lower_t<T>> x;
  const real_t<T>* scale;
  mat<T> y;
  T alpha, beta;
  using sum = none;
  using column_state = scaled_column<real_t<T>>;

  WL_DEVICE column_state column(i64 c) const { return {true, usable_scale(scale[c])}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& state) const {
    return store(y(i, c), widened<T>(x(i, c)) * T(state.scale), alpha, beta), sum{};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

} // namespace wl
