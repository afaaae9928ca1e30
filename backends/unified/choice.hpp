// A choice between two numbers that no processor has to predict.
#pragma once
#include "unified/types.hpp"

namespace wl {

// `a` if `first`, otherwise `b`. Host compilers make a branch of ?: for floating-point numbers, and
// a branch that is mispredicted takes as long as ten additions; GPUs select without one.
#if defined(WL_CUDA) || defined(WL_HIP) || defined(WL_SYCL)
template <class R>
WL_DEVICE R chosen(bool first, R a, R b) {
  return first ? a : b;
}
#else
template <class Bits, class R>
WL_DEVICE R chosen_bits(bool first, R a, R b) {
  static_assert(sizeof(Bits) == sizeof(R), "all bits of a number");
  Bits mine, other;
  __builtin_memcpy(&mine, &a, sizeof a);
  __builtin_memcpy(&other, &b, sizeof b);
  other ^= (mine ^ other) & -Bits(first);
  __builtin_memcpy(&a, &other, sizeof a);
  return a;
}
WL_DEVICE float chosen(bool first, float a, float b) { return chosen_bits<u32>(first, a, b); }
WL_DEVICE double chosen(bool first, double a, double b) {
  return chosen_bits<unsigned long long>(first, a, b);
}
#endif
template <class R>
WL_DEVICE complex<R> chosen(bool first, complex<R> a, complex<R> b) {
  return {chosen(first, a.re, b.re), chosen(first, a.im, b.im)};
}

} // namespace wl
