// Words of the text of a program, read without a stream: a process may hold several C++ runtimes
// with different locales, where streams end in a fault.
#pragma once

#include <Python.h>

#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>

#include "unified/types.hpp"

namespace wl {

[[noreturn]] inline void refuse_program(const std::string& why) {
  throw std::invalid_argument("function: expected the text of a program; " + why);
}

// Takes the text up to the next separator from `rest`; empty at its end.
inline std::string_view next_of(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view found = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  return found;
}

inline i64 integer_of(std::string_view word) {
  i64 value = 0;
  const char* const end = word.data() + word.size();
  const auto [last, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || last != end)
    refuse_program("'" + std::string(word) + "' is no integer");
  return value;
}

// Python's function has no locale, and reads inf and nan.
inline double number_of(std::string_view word) {
  const double value = PyOS_string_to_double(std::string(word).c_str(), nullptr, nullptr);
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    refuse_program("'" + std::string(word) + "' is no number");
  }
  return value;
}

} // namespace wl
