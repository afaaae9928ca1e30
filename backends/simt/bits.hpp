// Counting bits.
#pragma once
#include "unified/types.hpp"

namespace wl {

// The number of bits that are 1.
#if defined(WL_CUDA)
WL_DEVICE int ones_in(unsigned long long bits) { return __popcll(bits); }
#else
WL_DEVICE int ones_in(unsigned long long bits) { return __builtin_popcountll(bits); }
#endif

// The highest bit that is 1, of a number that is not 0.
#if defined(WL_CUDA)
WL_DEVICE int last_one_in(unsigned long long bits) { return 63 - __clzll(bits); }
#else
WL_DEVICE int last_one_in(unsigned long long bits) { return 63 - __builtin_clzll(bits); }
#endif

// The lowest bit that is 1, of a number that is not 0.
#if defined(WL_CUDA)
WL_DEVICE int first_one_in(unsigned long long bits) { return __ffsll((long long)bits) - 1; }
#else
WL_DEVICE int first_one_in(unsigned long long bits) { return __builtin_ctzll(bits); }
#endif

} // namespace wl
