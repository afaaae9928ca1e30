// Arrays of the dtypes that are stored and never computed in: float16 and bfloat16.
#pragma once

#include "omp/call.hpp"
#include "omp/half.hpp"

namespace wl {
namespace detail {

// float16's number in NumPy's C API; bfloat16, of the package ml_dtypes, gets one from NumPy while
// the process runs, so view_array() tells it by this one.
constexpr int FLOAT16 = 23, BFLOAT16 = 1016;

template <>
inline constexpr int number_of<half> = FLOAT16;
template <>
inline constexpr int number_of<bfloat> = BFLOAT16;

template <class...>
struct Types {};

// The stored dtypes of values that are computed in T, besides T: STORED_UNDER in core/operation.py.
template <class T>
struct lower_than {
  using types = Types<>;
};
template <>
struct lower_than<double> {
  using types = Types<float, half, bfloat>;
};
template <>
struct lower_than<float> {
  using types = Types<half, bfloat>;
};
template <>
struct lower_than<complex<double>> {
  using types = Types<complex<float>>;
};

template <class Body, class... Lower>
bool with_one_of([[maybe_unused]] int type_number, Types<Lower...>, [[maybe_unused]] Body&& body) {
  return ((type_number == number_of<Lower> && (body(Lower()), true)) || ...);
}

} // namespace detail

// Calls body(S()) with the type of an array of values that are computed in T.
template <class T, class Body>
void with_storage_type(const Call& call, const char* name, const ArrayView& a, Body&& body) {
  using namespace detail;
  if (a.type_number == number_of<T>)
    body(T());
  else if (!with_one_of(a.type_number, typename lower_than<T>::types(), body))
    call.fail_dtype(name, a, (dtype_name(number_of<T>) + ", or a lower dtype").c_str());
}

} // namespace wl
