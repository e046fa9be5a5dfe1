#include <dist/core/float16.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include <doctest/doctest.h>

using dist::BFloat16;

namespace {

constexpr int mantissa_bits = 7;
constexpr int bias = 127;
constexpr int special_exponent = 2 * bias + 1;

/// What a bit pattern means, by the definition of the format.
double meaning(std::uint16_t bits) {
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == special_exponent) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

/// The finite number of the pattern, and for the pattern of infinity the number that would follow the largest.
double extended_meaning(std::uint16_t bits) {
  return (bits & 0x7fff) == special_exponent << mantissa_bits ? std::copysign(std::ldexp(1.0, bias + 1), meaning(bits))
                                                              : meaning(bits);
}

BFloat16 pattern(std::uint32_t bits) { return BFloat16::from_bits(static_cast<std::uint16_t>(bits)); }

}  // namespace

TEST_CASE("every bit pattern converts to the float that it means and back to itself") {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const BFloat16 number = pattern(bits);
    const float value = number;
    const double expected = meaning(number.bits());
    if (std::isnan(expected)) {
      const std::uint32_t quiet = bits | 1U << (mantissa_bits - 1);
      wrong += !std::isnan(value) || BFloat16(value).bits() != quiet;
    } else {
      wrong += double{value} != expected || std::signbit(value) != std::signbit(expected);
      wrong += BFloat16(value).bits() != bits;
      wrong += BFloat16(expected).bits() != bits;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a float between two numbers becomes the nearer one, a tie the even one, denormals and overflow included") {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < (special_exponent << mantissa_bits); ++bits) {
    const double below = meaning(static_cast<std::uint16_t>(bits));
    const double above = extended_meaning(static_cast<std::uint16_t>(bits + 1));
    const auto tie = static_cast<float>((below + above) / 2);
    CHECK_MESSAGE(double{tie} == (below + above) / 2, "every tie is a float");
    const std::uint32_t even = bits + (bits & 1U);
    for (const std::uint32_t sign : {0U, 0x8000U}) {
      const float side = sign == 0 ? 1.0F : -1.0F;
      const auto becomes = [&](float number, std::uint32_t expected) {
        wrong += BFloat16(side * number).bits() != (sign | expected);
      };
      becomes(tie, even);
      becomes(std::nextafter(tie, 0.0F), bits);
      becomes(std::nextafter(tie, HUGE_VALF), bits + 1);
      becomes(static_cast<float>(below * 0.75 + above * 0.25), bits);
      becomes(static_cast<float>(below * 0.25 + above * 0.75), bits + 1);
      if (std::isfinite(meaning(static_cast<std::uint16_t>(bits + 1))))
        becomes(std::nextafter(static_cast<float>(above), 0.0F), bits + 1);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("what is too large becomes infinity, what is too small zero, and a NaN stays one") {
  const std::uint16_t infinite = special_exponent << mantissa_bits;
  CHECK(BFloat16(HUGE_VALF).bits() == infinite);
  CHECK(BFloat16(-HUGE_VALF).bits() == (0x8000 | infinite));
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits() == infinite);
  CHECK(BFloat16(std::numeric_limits<float>::denorm_min()).bits() == 0);
  CHECK(BFloat16(-std::numeric_limits<float>::denorm_min()).bits() == 0x8000);
  for (const float nan :
       {std::nanf(""), std::nanf("1"), -std::nanf("4194303"), std::numeric_limits<float>::signaling_NaN()}) {
    const BFloat16 number{nan};
    CHECK(std::isnan(float{number}));
    CHECK((number.bits() >> (mantissa_bits - 1) & 1) == 1);
    CHECK(std::signbit(float{number}) == std::signbit(nan));
  }
}

TEST_CASE("known numbers have known bits") {
  CHECK(BFloat16(1).bits() == 0x3f80);
  CHECK(BFloat16(-2).bits() == 0xc000);
  CHECK(BFloat16(3.14159265F).bits() == 0x4049);
  CHECK(BFloat16(0.1F).bits() == 0x3dcd);
  CHECK(BFloat16(1.0F / 3).bits() == 0x3eab);
  CHECK(BFloat16(0x1p-133F).bits() == 0x0001);
  CHECK(BFloat16(0x1p-134F).bits() == 0x0000);
}
