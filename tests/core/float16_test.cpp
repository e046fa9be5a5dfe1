#include <dist/core/float16.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

using dist::BFloat16;
using dist::Float16;

namespace {

/// Random numbers of a type, with more special values than by chance.
template <class T>
std::vector<T> operands() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> numbers{T(0),
                         T(1),
                         T(-1),
                         T(0.5),
                         T(3),
                         Limits::min(),
                         Limits::max(),
                         Limits::lowest(),
                         Limits::denorm_min(),
                         Limits::epsilon(),
                         Limits::infinity(),
                         -Limits::infinity()};
  std::mt19937 engine{7};
  while (numbers.size() < 300) {
    const T number = T::from_bits(static_cast<std::uint16_t>(engine()));
    if (!std::isnan(float{number})) numbers.push_back(number);
  }
  return numbers;
}

/// Rounds `exact` to the precision and range of `T` in double arithmetic: to the nearest unit in the last place, ties
/// to even.
template <class T>
double rounded(double exact) {
  using Limits = std::numeric_limits<T>;
  if (exact == 0 || !std::isfinite(exact)) return exact;
  int exponent = 0;
  static_cast<void>(std::frexp(exact, &exponent));
  const int unit = std::max(exponent, Limits::min_exponent) - Limits::digits;
  const double result = std::ldexp(std::nearbyint(std::ldexp(exact, -unit)), unit);
  const double limit = std::ldexp(1.0, Limits::max_exponent);
  return std::abs(result) < limit ? result : std::copysign(HUGE_VAL, exact);
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

}  // namespace

TEST_CASE_TEMPLATE("every operation is correctly rounded (spec G04)", T, Float16, BFloat16) {
  std::size_t wrong = 0;
  const std::vector<T> numbers = operands<T>();
  for (const T a : numbers)
    for (const T b : numbers) {
      const double wide_a = float{a};
      const double wide_b = float{b};
      T sum = a;
      T difference = a;
      T product = a;
      T quotient = a;
      sum += b;
      difference -= b;
      product *= b;
      quotient /= b;
      const auto check = [&](T plain, T compound, double exact) {
        wrong += !same(float{plain}, rounded<T>(exact)) || !same(float{compound}, float{plain});
      };
      check(a + b, sum, wide_a + wide_b);
      check(a - b, difference, wide_a - wide_b);
      check(a * b, product, wide_a * wide_b);
      check(a / b, quotient, wide_a / wide_b);
      wrong += (a < b) != (wide_a < wide_b) || (a == b) != (wide_a == wide_b) || (a >= b) != (wide_a >= wide_b) ||
               (a <=> b) != (wide_a <=> wide_b);
    }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("doubles and integers are rounded once, not via float", T, Float16, BFloat16) {
  using Limits = std::numeric_limits<T>;
  std::size_t wrong = 0;
  for (const T number : operands<T>()) {
    const double value = float{number};
    if (!std::isfinite(value) || std::abs(value) == double{float{Limits::max()}}) continue;
    const double unit = std::abs(double{float{T::from_bits(static_cast<std::uint16_t>(number.bits() + 1))}} - value);
    // A tie, and numbers closer to it than float precision.
    for (const double exact : {value + unit / 2, value + unit / 2 * (1 + 0x1p-40), value + unit / 2 * (1 - 0x1p-40)})
      wrong += !same(float{T(exact)}, rounded<T>(exact)) || !same(float{T(-exact)}, rounded<T>(-exact));
  }
  CHECK(wrong == 0);
  CHECK(T(1e300) == HUGE_VALF);
  CHECK(T(-1e300) == -HUGE_VALF);
  CHECK(same(float{T(-1e-300)}, -0.0));
  CHECK(std::isnan(float{T(std::nan(""))}));

  CHECK(T(true) == 1);
  CHECK(T(-3) == -3);
  CHECK(T(std::numeric_limits<std::int64_t>::min()) == (std::is_same_v<T, Float16> ? -HUGE_VALF : -0x1p63F));
}

TEST_CASE("a 64-bit integer is rounded once") {
  // Just above the tie between 2^62 and its bfloat16 neighbour: a double would round it to the tie.
  const std::int64_t above_tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1;
  CHECK(float{BFloat16(above_tie)} == 0x1.02p62F);
  CHECK(float{BFloat16(above_tie - 1)} == 0x1p62F);
  CHECK(float{BFloat16(-above_tie)} == -0x1.02p62F);
  CHECK(float{BFloat16(std::uint64_t{0} - 1)} == 0x1p64F);
}

TEST_CASE_TEMPLATE("negation changes only the sign", T, Float16, BFloat16) {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    wrong += (-T::from_bits(static_cast<std::uint16_t>(bits))).bits() != (bits ^ 0x8000U);
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("operations with another number are in float", T, Float16, BFloat16) {
  const T two{2};
  static_assert(std::is_same_v<decltype(two + two), T> && std::is_same_v<decltype(-two), T>);
  static_assert(std::is_same_v<decltype(two * 0.5F), float> && std::is_same_v<decltype(two + 1), float>);
  static_assert(std::is_same_v<decltype(two * 0.5), double>);
  static_assert(!std::is_convertible_v<float, T> && !std::is_convertible_v<int, T> && std::is_convertible_v<T, float>);
  static_assert(!std::is_constructible_v<T, int*> && !std::is_constructible_v<T, long double>);
  CHECK(two * 0.25F == 0.5F);
  T sum{1};
  sum += 0.5F;
  CHECK(sum == 1.5F);
}

TEST_CASE_TEMPLATE("the limits agree with the bit patterns", T, Float16, BFloat16) {
  using Limits = std::numeric_limits<T>;
  static_assert(Limits::is_specialized && Limits::is_signed && !Limits::is_integer && Limits::has_infinity);
  const auto next = [](T number) { return T::from_bits(static_cast<std::uint16_t>(number.bits() + 1)); };
  CHECK(float{Limits::min()} == std::ldexp(1.0F, Limits::min_exponent - 1));
  CHECK(double{float{Limits::max()}} == std::ldexp(1.0 - std::ldexp(1.0, -Limits::digits), Limits::max_exponent));
  CHECK(Limits::lowest() == -Limits::max());
  CHECK(std::isinf(float{next(Limits::max())}));
  CHECK(Limits::epsilon() == next(T(1)) - T(1));
  CHECK(Limits::round_error() == 0.5F);
  CHECK(Limits::denorm_min() == next(T(0)));
  CHECK(float{Limits::denorm_min()} == std::ldexp(1.0F, Limits::min_exponent - Limits::digits));
  CHECK(float{Limits::infinity()} == HUGE_VALF);
  CHECK(std::isnan(float{Limits::quiet_NaN()}));
  CHECK(std::isnan(float{Limits::signaling_NaN()}));
  CHECK(Limits::max_exponent10 == static_cast<int>(std::floor(std::log10(double{float{Limits::max()}}))));
  CHECK(Limits::min_exponent10 == static_cast<int>(std::ceil(std::log10(double{float{Limits::min()}}))));
  CHECK(Limits::digits10 == static_cast<int>(std::floor((Limits::digits - 1) * std::log10(2.0))));
  CHECK(Limits::max_digits10 == static_cast<int>(std::ceil(Limits::digits * std::log10(2.0) + 1)));
}

TEST_CASE_TEMPLATE("16-bit numbers are two trivially copyable bytes, zero by default", T, Float16, BFloat16) {
  static_assert(sizeof(T) == 2 && alignof(T) == 2 && std::is_trivial_v<T> && std::is_standard_layout_v<T>);
  static_assert(T{}.bits() == 0 && float{T(1.5) + T(2)} == 3.5F);  // also at compile time
  CHECK(T{} == 0);
}

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

/// Returns the value of a bit pattern, by the definition of the format.
template <class T>
double meaning(std::uint16_t bits) {
  const int exponent = (bits & 0x7fff) >> mantissa_bits<T>;
  const int mantissa = bits & ((1 << mantissa_bits<T>)-1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == special_exponent<T>) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias<T> - mantissa_bits<T>);
  return sign * std::ldexp((1 << mantissa_bits<T>)+mantissa, exponent - bias<T> - mantissa_bits<T>);
}

/// Returns the value of a bit pattern; for infinity, the number after the largest finite one.
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

TEST_CASE_TEMPLATE("every bit pattern converts to its float value and back", T, Float16, BFloat16) {
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

TEST_CASE_TEMPLATE("floats are rounded to nearest, ties to even, including denormals and overflow", T, Float16,
                   BFloat16) {
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

TEST_CASE_TEMPLATE("too large numbers become infinity, too small ones zero, and NaN is kept", T, Float16, BFloat16) {
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
