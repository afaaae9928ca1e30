// NaN: run-time compilers have no standard name for it.
#pragma once
#include "unified/types.hpp"

namespace wl {

WL_DEVICE double not_a_number() { return __builtin_bit_cast(double, 0x7ff8000000000000ull); }

} // namespace wl
