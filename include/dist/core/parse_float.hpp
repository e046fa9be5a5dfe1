/// Reads floating-point numbers from text.
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

/// Reads a decimal number from the beginning of [first, last), as std::from_chars does and whatever the locale is. A number that
/// is too small for T becomes the nearest one, which may be 0, without an error. Works also with standard libraries that lack
/// std::from_chars for such numbers, such as libc++ 19.
template <class T>
  requires std::same_as<T, float> || std::same_as<T, double>
[[nodiscard]] std::from_chars_result parse_float(const char* first, const char* last, T& value) {
#ifdef __cpp_lib_to_chars
  const std::from_chars_result read = std::from_chars(first, last, value);
  if (read.ec != std::errc::result_out_of_range) return read;  // which may be too large or too small
#endif
  const std::string digits(first, last);  // strtod needs an end
  const std::string_view unsigned_digits = std::string_view{digits}.substr(digits.starts_with('-') ? 1 : 0);
  const std::size_t letter = unsigned_digits.find_first_not_of(" \t\n\v\f\r+-");
  if (letter != 0) return {first, std::errc::invalid_argument};  // strtod skips them
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
