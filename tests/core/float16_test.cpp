#include <dist/core/float16.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include <doctest/doctest.h>

using dist::BFloat16;
using dist::Float16;

namespace {

template <class T>
constexpr int mantissa_bits = 10;
template <>
constexpr int mantissa_bits<BFloat16> = 7;
template <class T>
constexpr int bias = 15;
template <>
constexpr int bias<BFloat16> = 127;
template <class T>
constexpr int special_exponent = 2 * bias<T> + 1;

/// What a bit pattern means, by the definition of the format.
template <class T>
double meaning(std::uint16_t bits) {
  const int exponent = (bits & 0x7fff) >> mantissa_bits<T>;
  const int mantissa = bits & ((1 << mantissa_bits<T>)-1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == special_exponent<T>) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias<T> - mantissa_bits<T>);
  return sign * std::ldexp((1 << mantissa_bits<T>)+mantissa, exponent - bias<T> - mantissa_bits<T>);
}

/// The finite number of the pattern, and for the pattern of infinity the number that would follow the largest.
template <class T>
double extended_meaning(std::uint16_t bits) {
  return (bits & 0x7fff) == special_exponent<T> << mantissa_bits<T>
             ? std::copysign(std::ldexp(1.0, bias<T> + 1), meaning<T>(bits))
             : meaning<T>(bits);
}

template <class T>
T pattern(std::uint32_t bits) {
  return T::from_bits(static_cast<std::uint16_t>(bits));
}

}  // namespace

TEST_CASE_TEMPLATE("every bit pattern converts to the float that it means and back to itself", T, Float16, BFloat16) {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const T number = pattern<T>(bits);
    const float value = number;
    const double expected = meaning<T>(number.bits());
    if (std::isnan(expected)) {
      const std::uint32_t quiet = bits | 1U << (mantissa_bits<T> - 1);
      wrong += !std::isnan(value) || T(value).bits() != quiet;
    } else {
      wrong += double{value} != expected || std::signbit(value) != std::signbit(expected);
      wrong += T(value).bits() != bits;
      wrong += T(expected).bits() != bits;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE(
    "a float between two numbers becomes the nearer one, a tie the even one, denormals and overflow included", T,
    Float16, BFloat16) {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < (special_exponent<T> << mantissa_bits<T>); ++bits) {
    const double below = meaning<T>(static_cast<std::uint16_t>(bits));
    const double above = extended_meaning<T>(static_cast<std::uint16_t>(bits + 1));
    const auto tie = static_cast<float>((below + above) / 2);
    CHECK_MESSAGE(double{tie} == (below + above) / 2, "every tie is a float");
    const std::uint32_t even = bits + (bits & 1U);
    for (const std::uint32_t sign : {0U, 0x8000U}) {
      const float side = sign == 0 ? 1.0F : -1.0F;
      const auto becomes = [&](float number, std::uint32_t expected) {
        wrong += T(side * number).bits() != (sign | expected);
      };
      becomes(tie, even);
      becomes(std::nextafter(tie, 0.0F), bits);
      becomes(std::nextafter(tie, HUGE_VALF), bits + 1);
      becomes(static_cast<float>(below * 0.75 + above * 0.25), bits);
      becomes(static_cast<float>(below * 0.25 + above * 0.75), bits + 1);
      if (std::isfinite(meaning<T>(static_cast<std::uint16_t>(bits + 1))))
        becomes(std::nextafter(static_cast<float>(above), 0.0F), bits + 1);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("what is too large becomes infinity, what is too small zero, and a NaN stays one", T, Float16,
                   BFloat16) {
  const std::uint16_t infinite = special_exponent<T> << mantissa_bits<T>;
  CHECK(T(HUGE_VALF).bits() == infinite);
  CHECK(T(-HUGE_VALF).bits() == (0x8000 | infinite));
  CHECK(T(std::numeric_limits<float>::max()).bits() == infinite);
  CHECK(T(std::numeric_limits<float>::denorm_min()).bits() == 0);
  CHECK(T(-std::numeric_limits<float>::denorm_min()).bits() == 0x8000);
  for (const float nan :
       {std::nanf(""), std::nanf("1"), -std::nanf("4194303"), std::numeric_limits<float>::signaling_NaN()}) {
    const T number{nan};
    CHECK(std::isnan(float{number}));
    CHECK((number.bits() >> (mantissa_bits<T> - 1) & 1) == 1);
    CHECK(std::signbit(float{number}) == std::signbit(nan));
  }
}

TEST_CASE("known numbers of binary16 have known bits") {
  CHECK(Float16(1).bits() == 0x3c00);
  CHECK(Float16(-2).bits() == 0xc000);
  CHECK(Float16(65504).bits() == 0x7bff);
  CHECK(Float16(65519.996F).bits() == 0x7bff);
  CHECK(Float16(65520).bits() == 0x7c00);
  CHECK(Float16(0x1p-24F).bits() == 0x0001);
  CHECK(Float16(0x1p-25F).bits() == 0x0000);
  CHECK(Float16(0.1F).bits() == 0x2e66);
  CHECK(Float16(1.0F / 3).bits() == 0x3555);
}

TEST_CASE("known numbers of bfloat16 have known bits") {
  CHECK(BFloat16(1).bits() == 0x3f80);
  CHECK(BFloat16(-2).bits() == 0xc000);
  CHECK(BFloat16(3.14159265F).bits() == 0x4049);
  CHECK(BFloat16(0.1F).bits() == 0x3dcd);
  CHECK(BFloat16(1.0F / 3).bits() == 0x3eab);
  CHECK(BFloat16(0x1p-133F).bits() == 0x0001);
  CHECK(BFloat16(0x1p-134F).bits() == 0x0000);
}
