// Counting bits.
#pragma once
#include "types.hpp"

namespace wl {

// How many bits are 1.
#if defined(WL_CUDA)
WL_DEVICE int ones_in(unsigned long long bits) { return __popcll(bits); }
#else
WL_DEVICE int ones_in(unsigned long long bits) { return __builtin_popcountll(bits); }
#endif

} // namespace wl
