// Numbers in the text of Matrix Market files: a line for each entry, a row, a column and its value.
//
// Only plain text is read here: digits, a point, an exponent, blanks between numbers, no blank
// lines. All other text is left to the reader in Python, which knows the whole grammar and names
// the line of an error.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "unified/types.hpp"

namespace wl {

namespace detail {

// Integers up to this number of digits fit 64 bits with a sign.
constexpr int kMostDigits = 18;

// Powers of ten that are doubles without rounding.
constexpr int kExactPowers = 22;
constexpr double kPowersOfTen[kExactPowers + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

// Goes behind the digits at `at` and appends them to `value`.
inline const char* read_digits(const char* at, std::uint64_t& value) {
  for (unsigned digit; (digit = static_cast<unsigned char>(*at) - unsigned('0')) < 10; ++at)
    value = 10 * value + digit;
  return at;
}

// Reads digits alone; null without them, or with more than fit.
inline const char* read_natural(const char* at, i64& value) {
  std::uint64_t digits = 0;
  const char* const end = read_digits(at, digits);
  value = static_cast<i64>(digits);
  return end > at && end - at <= kMostDigits ? end : nullptr;
}

// Divides by the powers of ten that end a number: 1.000000000e+00 is a small integer.
inline void drop_zeros(std::uint64_t& digits, i64& exponent) {
  for (const auto& [power, zeros] : {std::pair{100000000u, 8}, {10000u, 4}, {100u, 2}, {10u, 1}})
    while (digits % power == 0 && digits > 0) {
      digits /= power;
      exponent += zeros;
    }
}

inline const char* read_number(const char* at, i64& value) {
  const bool negative = *at == '-';
  const char* const end = read_natural(at + negative, value);
  value = negative ? -value : value;
  return end;
}

// The double that is nearest to a number of up to 53 bits and a small power of ten is one product
// or quotient of doubles: Clinger (1990), How to read floating point numbers accurately.
inline const char* read_number(const char* at, double& value) {
  const char* const begin = at;
  const bool negative = *at == '-';
  at += negative;
  std::uint64_t digits = 0;
  const char* const whole = at;
  at = read_digits(at, digits);
  i64 count = at - whole, exponent = 0;
  if (*at == '.') {
    const char* const fraction = ++at;
    at = read_digits(at, digits);
    exponent = fraction - at;
    count -= exponent;
  }
  if (count == 0)
    return nullptr;
  if (*at == 'e' || *at == 'E') {
    ++at;
    const bool below = *at == '-';
    at += *at == '-' || *at == '+';
    i64 power = 0;
    const char* const end = read_natural(at, power);
    if (end == nullptr)
      return nullptr;
    at = end;
    exponent += below ? -power : power;
  }
  constexpr std::uint64_t exact = std::uint64_t(1) << std::numeric_limits<double>::digits;
  if (count <= kMostDigits && digits > exact)
    drop_zeros(digits, exponent);
  if (count <= kMostDigits && digits <= exact && exponent >= -kExactPowers &&
      exponent <= kExactPowers) {
    const double number = static_cast<double>(digits);
    const double rounded =
        exponent < 0 ? number / kPowersOfTen[-exponent] : number * kPowersOfTen[exponent];
    value = negative ? -rounded : rounded;
    return at;
  }
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
  const auto [last, error] = std::from_chars(begin, at, value);
  return last == at && error == std::errc() ? at : nullptr;
#else
  return begin == nullptr ? at : nullptr; // the library reads no doubles
#endif
}

} // namespace detail

// Where the entries of a text go; `values` has `width` numbers of an entry.
template <class V, class I>
struct TextEntries {
  i64 m, n;
  I *row, *col;
  V* values;
  int width;

  // Reads the lines of [at, end), of which each has its end, to `entry` and the following places.
  // Returns whether all of them are plain, and within the matrix.
  bool read(const char* at, const char* end, i64 entry) const {
    for (; at < end; ++entry) {
      i64 i = 0, j = 0;
      at = skip_blanks(at);
      if ((at = detail::read_natural(at, i)) == nullptr || !detail::is_blank(*at))
        return false;
      at = skip_blanks(at);
      if ((at = detail::read_natural(at, j)) == nullptr || i < 1 || i > m || j < 1 || j > n)
        return false;
      for (int part = 0; part < width; ++part) {
        if (!detail::is_blank(*at))
          return false;
        at = skip_blanks(at);
        if ((at = detail::read_number(at, values[entry * width + part])) == nullptr)
          return false;
      }
      at = skip_blanks(at);
      if (*at++ != '\n')
        return false;
      row[entry] = static_cast<I>(i - 1);
      col[entry] = static_cast<I>(j - 1);
    }
    return true;
  }

private:
  static const char* skip_blanks(const char* at) {
    while (detail::is_blank(*at))
      ++at;
    return at;
  }
};

// The number of line ends in [at, end).
inline i64 count_lines(const char* at, const char* end) {
  i64 lines = 0;
  for (; at < end; ++at)
    lines += *at == '\n';
  return lines;
}

} // namespace wl
