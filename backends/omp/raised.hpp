// Values that are stored in a lower precision S, in the type T that is computed in.
#pragma once

#include <type_traits>

#include "half.hpp"
#include "types.hpp"

namespace wl {

// Exact: every value of S is one of T.
template <class T, class S>
inline T raised(S v) {
  if constexpr (std::is_same_v<S, T>)
    return v;
  else if constexpr (std::is_same_v<T, real_t<T>>)
    return T(widen(v));
  else
    return {v.re, v.im};
}

} // namespace wl
