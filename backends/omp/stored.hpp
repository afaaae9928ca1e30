// Arrays of what is stored and never computed in: float16 and bfloat16.
#pragma once

#include "call.hpp"
#include "half.hpp"

namespace wl {
namespace detail {

// float16's number in NumPy's C API; bfloat16, of the package ml_dtypes, gets one from NumPy while
// the process runs, so view_array() tells it by this one.
constexpr int FLOAT16 = 23, BFLOAT16 = 1016;

template <>
inline constexpr int number_of<half> = FLOAT16;
template <>
inline constexpr int number_of<bfloat> = BFLOAT16;

} // namespace detail
} // namespace wl
