// 16-bit floating-point types that products of matrices read and write. Sums are of type float.
#pragma once
#include "simt/lanes.hpp"

namespace wl {

struct half {
  u16 bits;
};
struct bfloat {
  u16 bits;
};

// The type in which sums of T are accumulated.
template <class T>
struct held {
  using type = T;
};
template <>
struct held<half> {
  using type = float;
};
template <>
struct held<bfloat> {
  using type = float;
};
template <class T>
using held_t = typename held<T>::type;

WL_DEVICE u32 bits_of(float v) { return __builtin_bit_cast(u32, v); }
WL_DEVICE float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }

template <class T>
WL_DEVICE T widen(T v) {
  return v;
}
WL_DEVICE float widen(bfloat v) { return float_of(u32(v.bits) << 16); }

#if defined(WL_CUDA)
WL_DEVICE float widen(half v) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(v.bits));
  return wide;
}
WL_DEVICE half half_of(float v) {
  half narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(v));
  return narrow;
}
#elif defined(WL_HIP) && defined(__HIP_PLATFORM_AMD__)
WL_DEVICE float widen(half v) { return float(__builtin_bit_cast(_Float16, v.bits)); }
WL_DEVICE half half_of(float v) { return {__builtin_bit_cast(u16, _Float16(v))}; }
#else
// For compilers that do not support the type on every device. The bias of the exponent of a half is
// 112 below the bias of a float.
WL_DEVICE float widen(half v) {
  const u32 sign = u32(v.bits & 0x8000u) << 16, exponent = v.bits >> 10 & 0x1fu,
            mantissa = v.bits & 0x3ffu;
  if (exponent == 0) // subnormal: the last bit is 2^-24
    return float_of(bits_of(float(mantissa) * 0x1p-24f) | sign);
  const u32 wide = exponent == 0x1fu ? 0xffu : exponent + 112;
  return float_of(sign | wide << 23 | mantissa << 13);
}
WL_DEVICE half half_of(float v) {
  const u32 sign = bits_of(v) >> 16 & 0x8000u, size = bits_of(v) & 0x7fffffffu;
  u32 bits;
  if (size > 0x7f800000u) // NaN
    bits = 0x7e00u;
  else if (size >= 0x47800000u) // 2^16 and more
    bits = 0x7c00u;
  else if (size < 0x38800000u) // below 2^-14: the adder rounds to multiples of 2^-24
    bits = bits_of(float_of(size) + 0.5f) - bits_of(0.5f);
  else // to the nearest, ties to even; a carry increments the exponent
    bits = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
  return {u16(sign | bits)};
}
#endif

// A value that is stored in S, converted to the type T of the computation. The conversion is exact.
template <class T, class S>
WL_DEVICE T raised(S v) {
  if constexpr (same<S, T>::value)
    return v;
  else if constexpr (same<T, real_t<T>>::value)
    return T(widen(v));
  else
    return {v.re, v.im};
}

// The two 16-bit numbers in a word.
template <class T>
WL_DEVICE void widen_both(u32 word, float& low, float& high);
template <>
WL_DEVICE void widen_both<bfloat>(u32 word, float& low, float& high) {
  low = float_of(word << 16);
  high = float_of(word & 0xffff0000u);
}
template <>
WL_DEVICE void widen_both<half>(u32 word, float& low, float& high) {
#if defined(WL_CUDA)
  asm("{.reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
      : "=f"(low), "=f"(high)
      : "r"(word));
#else
  low = widen(half{u16(word)});
  high = widen(half{u16(word >> 16)});
#endif
}

WL_DEVICE bfloat bfloat_of(float v) {
  const u32 bits = bits_of(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) // rounding could turn a NaN into infinity
    return {u16(bits >> 16 | 0x40u)};
  return {u16((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

template <class T>
struct narrowed {
  WL_DEVICE static T of(T v) { return v; }
};
template <>
struct narrowed<half> {
  WL_DEVICE static half of(float v) { return half_of(v); }
};
template <>
struct narrowed<bfloat> {
  WL_DEVICE static bfloat of(float v) { return bfloat_of(v); }
};

// The factor of vectors of length 1 that are stored in S: see unit_of in core/operations/gmres.py.
// It is a power of two, so that multiplication by it does not round.
template <class S>
struct basis_unit {
  static constexpr float value = 1.0f;
};
template <>
struct basis_unit<half> {
  static constexpr float value = 32768.0f;
};

// v / basis_unit<S>
template <class S, class T>
WL_DEVICE T without_unit(T v) {
  if constexpr (basis_unit<S>::value == 1.0f)
    return v;
  else
    return v * T(real_t<T>(1) / real_t<T>(basis_unit<S>::value));
}

// v basis_unit<S>, rounded to S; 64-bit values are converted to 16 bits via float.
template <class S, class T>
WL_DEVICE S rounded_to(T v) {
  if constexpr (same<S, T>::value) {
    return v;
  } else if constexpr (same<T, real_t<T>>::value) {
    return narrowed<S>::of(float(v * T(basis_unit<S>::value)));
  } else {
    using R = real_t<S>;
    return {R(v.re), R(v.im)};
  }
}

// y = alpha v + beta y, rounded once; beta = 0 does not read y.
template <class T>
WL_DEVICE void store_narrowed(T& y, held_t<T> v, held_t<T> alpha, held_t<T> beta) {
  using S = held_t<T>;
  y = narrowed<T>::of(beta == S(0) ? alpha * v : alpha * v + beta * widen(y));
}

} // namespace wl
