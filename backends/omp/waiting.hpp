// Waiting actively.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace wl {

// Between two looks.
inline void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace wl
