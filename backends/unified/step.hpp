// Declarations used by the functors of steps. See wollemi.core.step and functors.py.
#pragma once
#include "unified/status.hpp"

namespace wl {

// "Adding" keeps the larger one, and NaN once there is one.
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
