// Sums of products, as all kernels of this folder take them.
#pragma once
#include "lanes.hpp"
#include "narrow.hpp"

namespace wl {

// sum += a b. The compiler of the CPU driver (2026.2) crashes when it vectorizes loops that add up
// products of complex floats, so it is kept from it: a fence of a work-item alone costs nothing
// else.
template <class T>
WL_DEVICE void multiply_add(T& sum, T a, T b) {
  sum += a * b;
  if constexpr (WL_BLOCK == 1 && same<T, complex<float>>::value)
    sycl::atomic_fence(sycl::memory_order::acq_rel, sycl::memory_scope::work_item);
}

} // namespace wl
