// Products that round alike on all executors.
#pragma once
#include "unified/types.hpp"

namespace wl {

// The product, rounded before anything is added to it. A fused multiply-add rounds only once, and
// executors use it in different operations: the last bits of hierarchies would differ, and with
// them the choice between equal values. The build compiles these functors for omp without
// contraction.
#if defined(WL_CUDA)
WL_DEVICE float rounded_product(float a, float b) { return __fmul_rn(a, b); }
WL_DEVICE double rounded_product(double a, double b) { return __dmul_rn(a, b); }
#else
template <class R>
WL_DEVICE R rounded_product(R a, R b) {
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
  return a * b;
}
#endif
template <class R>
WL_DEVICE complex<R> rounded_product(complex<R> a, complex<R> b) {
  return {rounded_product(a.re, b.re) - rounded_product(a.im, b.im),
          rounded_product(a.re, b.im) + rounded_product(a.im, b.re)};
}

} // namespace wl
