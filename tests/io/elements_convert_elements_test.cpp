#include <dist/io/elements.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/io/element_type.hpp>

using dist::BFloat16;
using dist::Float16;
using dist::io::convert_elements;

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

/// Converts `from` to `To`; -1 if it is not representable.
template <class To, class From>
double converted(From from) {
  To to[1]{};
  if (convert_elements(std::span<const From>{&from, 1}, std::span<To>{to}) == 0) return -1;
  return static_cast<double>(to[0]);
}
template <class To, class From>
bool is_refused(From from) {
  To to[1]{};
  return convert_elements(std::span<const From>{&from, 1}, std::span<To>{to}) == 0;
}

}  // namespace

TEST_CASE("numbers that both types represent are unchanged, between all types") {
  for (const auto from_type : dist::io::all_element_types)
    for (const auto to_type : dist::io::all_element_types)
      dist::io::with_element_type(from_type, [&]<class From>() {
        dist::io::with_element_type(to_type, [&]<class To>() {
          CHECK(converted<To>(static_cast<From>(0)) == 0);
          CHECK(converted<To>(static_cast<From>(1)) == 1);
        });
      });
}

TEST_CASE("a floating-point result is the nearest number") {
  CHECK(converted<float>(0.1) == static_cast<double>(0.1F));
  CHECK(converted<double>(0.1F) == static_cast<double>(0.1F));
  CHECK(converted<float>(std::int64_t{16'777'217}) == 16'777'216);  // 2^24 + 1 is a tie, rounded to even
  CHECK(converted<float>(std::uint64_t{0xFFFF'FFFF'FFFF'FFFF}) == 0x1p64);
  CHECK(converted<BFloat16>(1.00390625F) == 1);                     // 1 + 2^-8, a tie
  CHECK(converted<BFloat16>(1.0 + 0x1p-8 + 0x1p-40) == 1.0078125);  // just above the tie
  CHECK(converted<Float16>(BFloat16(1.5F)) == 1.5);
  CHECK(converted<Float16>(0x1p-24) == 0x1p-24);
  CHECK(converted<Float16>(65519.0F) == 65504);
}

TEST_CASE("infinity and NaN are unchanged, and finite numbers must remain finite") {
  CHECK(converted<Float16>(infinite) == static_cast<double>(infinite));
  CHECK(converted<float>(-static_cast<double>(infinite)) == -static_cast<double>(infinite));
  CHECK(std::isnan(converted<BFloat16>(no_number)));
  CHECK(std::isnan(converted<double>(Float16(no_number))));
  CHECK(is_refused<Float16>(65520.0F));
  CHECK(is_refused<Float16>(std::int32_t{100'000}));
  CHECK(is_refused<Float16>(BFloat16(1e20F)));
  CHECK(is_refused<float>(1e39));
  CHECK(is_refused<BFloat16>(std::numeric_limits<float>::max()));
}

TEST_CASE("an integer result equals its source") {
  CHECK(converted<std::uint8_t>(std::int64_t{255}) == 255);
  CHECK(is_refused<std::uint8_t>(std::int64_t{256}));
  CHECK(is_refused<std::uint8_t>(std::int8_t{-1}));
  CHECK(is_refused<std::uint64_t>(std::int64_t{-1}));
  CHECK(is_refused<std::int64_t>(std::uint64_t{1} << 63));
  CHECK(converted<std::int8_t>(std::int32_t{-128}) == -128);
  CHECK(is_refused<std::int8_t>(std::uint8_t{128}));
  CHECK(converted<std::int8_t>(-128.0F) == -128);
  CHECK(is_refused<std::int8_t>(-129.0F));
  CHECK(is_refused<std::int8_t>(128.0));
  CHECK(is_refused<std::int32_t>(0.5F));
  CHECK(is_refused<std::int32_t>(no_number));
  CHECK(is_refused<std::int64_t>(infinite));
  CHECK(converted<std::int64_t>(-0x1p63) == -0x1p63);
  CHECK(is_refused<std::int64_t>(0x1p63));
  CHECK(converted<std::uint64_t>(0x1p63) == 0x1p63);
  CHECK(is_refused<std::uint64_t>(0x1p64));
  CHECK(converted<std::uint16_t>(Float16(2048.0F)) == 2048);
}

TEST_CASE("a bool is 0 or 1") {
  CHECK(converted<float>(true) == 1);
  CHECK(converted<BFloat16>(true) == 1);
  CHECK(converted<bool>(1.0) == 1);
  CHECK(converted<bool>(-0.0F) == 0);
  CHECK(is_refused<bool>(2));
  CHECK(is_refused<bool>(-1));
  CHECK(is_refused<bool>(0.5F));
  CHECK(is_refused<bool>(no_number));
}

TEST_CASE("the index of the first element that is not representable is returned") {
  std::vector<float> from(1000, 3.0F);
  std::vector<std::int16_t> to(1000);
  CHECK(convert_elements(std::span<const float>{from}, std::span{to}) == 1000);
  CHECK(to == std::vector<std::int16_t>(1000, 3));
  from[700] = 0.5F;
  from[300] = 40'000;
  CHECK(convert_elements(std::span<const float>{from}, std::span{to}) == 300);
  CHECK(convert_elements(std::span<const float>{}, std::span<int>{}) == 0);
}
