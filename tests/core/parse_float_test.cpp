#include <dist/core/parse_float.hpp>

#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include <doctest/doctest.h>

using dist::detail::parse_float;

namespace {

/// Parses all of `text`; -77 on failure.
template <class T>
T number(std::string_view text) {
  T value = -1;
  const auto [stop, error] = parse_float(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && stop == text.data() + text.size() ? value : T{-77};
}

template <class T>
std::errc error(std::string_view text) {
  T value = 5;
  const auto read = parse_float(text.data(), text.data() + text.size(), value);
  CHECK(value == 5);
  return read.ec;
}

}  // namespace

TEST_CASE("decimal numbers are parsed to the nearest value") {
  CHECK(number<float>("0.1") == 0.1F);
  CHECK(number<double>("-1.5e3") == -1500);
  CHECK(number<double>("179769313486231570814527423731704356798070e267") == std::numeric_limits<double>::max());
  CHECK(number<float>("16777217") == 16777216);  // a tie, to even
  CHECK(number<float>("inf") == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(number<double>("nan")));
  CHECK(number<double>(std::string_view{"12345", 2}) == 12);
}

TEST_CASE("numbers too small for the type become the nearest one, those too large are an error") {
  CHECK(number<float>("1e-40") == 1e-40F);  // denormal
  CHECK(number<float>("1e-60") == 0);
  CHECK(number<double>("5e-324") == std::numeric_limits<double>::denorm_min());
  CHECK(number<double>("1e-999") == 0);
  CHECK(std::signbit(number<double>("-1e-999")));
  CHECK(number<float>("1e99") == -77);
  CHECK(error<float>("1e99") == std::errc::result_out_of_range);
  CHECK(error<double>("-1e999") == std::errc::result_out_of_range);
}

TEST_CASE("text without a number is rejected, and parsing stops at its end") {
  for (const std::string_view text : {"", "-", "+1", " 1", "- 1", "-+1", "x", ".", "e5"})
    CHECK(error<double>(text) == std::errc::invalid_argument);
  for (const std::string_view text : {"1x", "0x10", "1.5 ", "2e", "1,5"}) CHECK(number<double>(text) == -77);
  double value = -1;
  const std::string_view hexadecimal = "0x10";
  CHECK(parse_float(hexadecimal.data(), hexadecimal.data() + 4, value).ptr == hexadecimal.data() + 1);
  CHECK(value == 0);
}
