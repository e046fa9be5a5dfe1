#include <dist/core/small_float.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <dist/core/float16.hpp>

#include <doctest/doctest.h>

using dist::BFloat16;
using dist::Float16;

namespace {

/// Any two numbers of a type, the special ones more often than chance would have them.
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

/// `exact` rounded to the precision and range of `T` with double arithmetic alone: in units of the last place, to the
/// nearest, ties to even.
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

TEST_CASE_TEMPLATE("every operation rounds once, as if it were done exactly (spec G04)", T, Float16, BFloat16) {
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

TEST_CASE_TEMPLATE("a double and an integer are rounded once, not first to float", T, Float16, BFloat16) {
  using Limits = std::numeric_limits<T>;
  std::size_t wrong = 0;
  for (const T number : operands<T>()) {
    const double value = float{number};
    if (!std::isfinite(value) || std::abs(value) == double{float{Limits::max()}}) continue;
    const double unit = std::abs(double{float{T::from_bits(static_cast<std::uint16_t>(number.bits() + 1))}} - value);
    // A tie, and what is next to a tie by less than a float can tell.
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

TEST_CASE("an integer of more bits than a double holds is rounded once") {
  // Just above the tie between 2^62 and its bfloat16 neighbour: a double would round it to the tie.
  const std::int64_t above_tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1;
  CHECK(float{BFloat16(above_tie)} == 0x1.02p62F);
  CHECK(float{BFloat16(above_tie - 1)} == 0x1p62F);
  CHECK(float{BFloat16(-above_tie)} == -0x1.02p62F);
  CHECK(float{BFloat16(std::uint64_t{0} - 1)} == 0x1p64F);
}

TEST_CASE_TEMPLATE("negation changes the sign only", T, Float16, BFloat16) {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    wrong += (-T::from_bits(static_cast<std::uint16_t>(bits))).bits() != (bits ^ 0x8000U);
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("operations with another number are those of float", T, Float16, BFloat16) {
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

TEST_CASE_TEMPLATE("the limits agree with what the bits mean", T, Float16, BFloat16) {
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

TEST_CASE_TEMPLATE("numbers are two bytes that may be copied as such, zero by default", T, Float16, BFloat16) {
  static_assert(sizeof(T) == 2 && alignof(T) == 2 && std::is_trivial_v<T> && std::is_standard_layout_v<T>);
  static_assert(T{}.bits() == 0 && float{T(1.5) + T(2)} == 3.5F);  // also at compile time
  CHECK(T{} == 0);
}
