// Declarations used by the functors of steps. See wollemi.core.step and functors.py.
#pragma once
#include "unified/status.hpp"

namespace wl {

// "Adding" keeps the larger number; the result is NaN once a number is NaN.
template <class R>
struct maximum {
  R value;
  WL_DEVICE maximum& operator+=(maximum o) {
    if (!(o.value <= value))
      value = value == value ? o.value : value;
    return *this;
  }
};

} // namespace wl
