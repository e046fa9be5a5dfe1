#pragma once

#include <cerrno>
#include <charconv>
#include <clocale>  // newlocale
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

namespace dist::detail {

/// Parses a decimal number at the start of [first, last) like std::from_chars, independent of the locale. Numbers too
/// small for T become the nearest value, possibly 0, without an error. Does not need floating-point std::from_chars,
/// which libc++ 19 lacks.
template <class T>
  requires std::same_as<T, float> || std::same_as<T, double>
[[nodiscard]] std::from_chars_result parse_float(const char* first, const char* last, T& value) {
#ifdef __cpp_lib_to_chars
  const std::from_chars_result read = std::from_chars(first, last, value);
  if (read.ec != std::errc::result_out_of_range) return read;  // too large or too small
#endif
  const std::string digits(first, last);  // strtod needs a terminator
  const std::string_view unsigned_digits = std::string_view{digits}.substr(digits.starts_with('-') ? 1 : 0);
  const std::size_t letter = unsigned_digits.find_first_not_of(" \t\n\v\f\r+-");
  if (letter != 0) return {first, std::errc::invalid_argument};  // strtod would skip it
  if (unsigned_digits.starts_with("0x") || unsigned_digits.starts_with("0X")) {
    value = first == last || *first != '-' ? T{0} : -T{0};
    return {first + (digits.size() - unsigned_digits.size()) + 1, std::errc{}};
  }
  static const locale_t c_locale = ::newlocale(LC_ALL_MASK, "C", locale_t{});
  char* end = nullptr;
  errno = 0;
  T nearest{};
  if constexpr (std::same_as<T, float>)
    nearest = ::strtof_l(digits.c_str(), &end, c_locale);
  else
    nearest = ::strtod_l(digits.c_str(), &end, c_locale);
  if (end == digits.c_str()) return {first, std::errc::invalid_argument};
  const char* const stop = first + (end - digits.c_str());
  if (errno == ERANGE && std::abs(nearest) > 1) return {stop, std::errc::result_out_of_range};
  value = nearest;
  return {stop, std::errc{}};
}

}  // namespace dist::detail
