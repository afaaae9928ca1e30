// The two 16-bit floating-point formats. They are stored, never computed in: sums are in float.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace wl {

namespace detail {

template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "a different reading of the same bits");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

} // namespace detail

// IEEE binary16.
struct half {
  std::uint16_t bits;
};

// The upper half of a binary32.
struct bfloat {
  std::uint16_t bits;
};

inline float widen(float v) { return v; }
inline double widen(double v) { return v; }

inline float widen(bfloat v) {
  return detail::bits_as<float>(static_cast<std::uint32_t>(v.bits) << 16);
}

inline float widen(half v) {
#if defined(__F16C__)
  return _cvtsh_ss(v.bits);
#else
  const std::uint32_t sign = static_cast<std::uint32_t>(v.bits & 0x8000u) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(v.bits & 0x7fffu) << 13;
  if (rest >= 0x0f800000u) // infinity and NaN keep the largest exponent
    return detail::bits_as<float>(sign | rest | 0x7f800000u);
  // 2^112 moves the exponent from one bias to the other, and makes subnormals normal.
  const float size = detail::bits_as<float>(rest) * 0x1p112f;
  return detail::bits_as<float>(sign | detail::bits_as<std::uint32_t>(size));
#endif
}

inline void narrow(float v, float& to) { to = v; }
inline void narrow(double v, double& to) { to = v; }

// Rounds to nearest, ties to even, as all of these do.
inline void narrow(float v, bfloat& to) {
  const std::uint32_t bits = detail::bits_as<std::uint32_t>(v);
  if (v != v)
    to.bits = static_cast<std::uint16_t>(bits >> 16 | 0x40u); // rounding could make it infinite
  else
    to.bits = static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline void narrow(float v, half& to) {
#if defined(__F16C__)
  to.bits = _cvtss_sh(v, _MM_FROUND_TO_NEAREST_INT);
#else
  const std::uint32_t bits = detail::bits_as<std::uint32_t>(v);
  const std::uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  std::uint32_t rest;
  if (size > 0x7f800000u)
    rest = 0x7e00u;
  else if (size >= 0x477ff000u) // 65520 and more round to infinity
    rest = 0x7c00u;
  else if (size < 0x38800000u) // below 2^-14 the sum with 1/2 leaves the digits of a subnormal
    rest = detail::bits_as<std::uint32_t>(detail::bits_as<float>(size) + 0.5f) - 0x3f000000u;
  else
    rest = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  to.bits = static_cast<std::uint16_t>(sign | rest);
#endif
}

} // namespace wl
