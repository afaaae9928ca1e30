// Conversion between T, the type of the computation, and S, the lower precision in which values are
// stored.
#pragma once

#include "omp/arithmetic.hpp"

namespace wl {

// The factor of vectors of length 1 that are stored in S: see unit_of in core/operations/gmres.py.
// It is a power of two, so that multiplication by it does not round.
template <class S>
inline constexpr float unit = 1.0f;
template <>
inline constexpr float unit<half> = 32768.0f;

// v / unit<S>
template <class S, class T>
inline T without_unit(T v) {
  if constexpr (unit<S> == 1.0f)
    return v;
  else
    return v * T(real_t<T>(1) / real_t<T>(unit<S>));
}

// v unit<S>, rounded to S; 64-bit numbers go through float to 16-bit ones.
template <class S, class T>
inline S lowered(T v) {
  if constexpr (std::is_same_v<S, T>) {
    return v;
  } else if constexpr (std::is_same_v<T, real_t<T>>) {
    S to;
    narrow(static_cast<float>(v * T(unit<S>)), to);
    return to;
  } else {
    using R = real_t<S>;
    return {static_cast<R>(v.re), static_cast<R>(v.im)};
  }
}

// A value that was just stored, from memory. GCC 12 removes the conversion of a vector of two
// numbers to a lower precision and back, and goes on with the unrounded values.
template <class T, class S>
inline const S& as_stored(S& stored) {
  if constexpr (!std::is_same_v<S, T>)
    asm("" : "+m"(stored));
  return stored;
}

// L adjacent values of S in T.
template <int L, class T, class S>
struct RaisedLanes {
  T values[L];
  explicit RaisedLanes(const S* from) {
#if defined(__F16C__)
    // The compiler makes no vectors of the conversion of one half.
    if constexpr (std::is_same_v<S, half> && L % 8 == 0) {
      alignas(32) float wide[L];
      for (int l = 0; l < L; l += 8) {
        const void* const eight = from + l;
        _mm256_store_ps(wide + l,
                        _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(eight))));
      }
      for (int l = 0; l < L; ++l)
        values[l] = wide[l];
      return;
    }
#endif
    for (int l = 0; l < L; ++l)
      values[l] = raised<T>(from[l]);
  }
  T operator[](int l) const { return values[l]; }
};

// Nothing to convert.
template <int L, class T>
struct RaisedLanes<L, T, T> {
  const T* from;
  explicit RaisedLanes(const T* given) : from(given) {}
  const T& operator[](int l) const { return from[l]; }
};

} // namespace wl
