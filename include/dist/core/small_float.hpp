/// What the 16-bit floating-point types share: arithmetic through float, and their limits.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <dist/core/config.hpp>

namespace dist::detail {

/// std::bit_cast, which device code may not call.
template <class To, class From>
[[nodiscard]] DIST_HD constexpr To bits_as(From from) noexcept {
  return __builtin_bit_cast(To, from);
}

/// A number that a 16-bit type may be made from: every arithmetic type of at most 64 bits.
template <class Number>
concept Narrowable = std::is_arithmetic_v<Number> && sizeof(Number) <= 8;

/// `number` as a float whose last bit says whether anything was cut off (round to odd), so that rounding the float to
/// 16 bits gives what rounding `number` itself would.
DIST_HD constexpr float to_sticky_float(double number) noexcept {
  const float nearest = static_cast<float>(number);
  const double back = nearest;
  auto bits = bits_as<std::uint32_t>(nearest);
  if (back != number && number == number && (bits & 1U) == 0)
    bits = (back < 0 ? -back : back) > (number < 0 ? -number : number) ? bits - 1 : bits + 1;
  return bits_as<float>(bits);
}
DIST_HD constexpr float to_sticky_float(float number) noexcept { return number; }
template <class Integer>
requires std::is_integral_v<Integer> DIST_HD constexpr float to_sticky_float(Integer number) noexcept {
  bool negative = false;
  if constexpr (std::is_signed_v<Integer>) negative = number < 0;
  auto magnitude = static_cast<std::uint64_t>(number);
  if (negative) magnitude = 0 - magnitude;
  // A double holds 53 bits: what is below them becomes one bit.
  if ((magnitude >> 53) != 0)
    magnitude = (magnitude & ~std::uint64_t{0x7ff}) | ((magnitude & 0x7ff) != 0 ? 0x800U : 0U);
  const auto exact = static_cast<double>(magnitude);
  return to_sticky_float(negative ? -exact : exact);
}

/// The bits of a 16-bit type `T` that converts to float and is made from it, and its arithmetic. A float is wide enough for each
/// operation to round as if it were done exactly. Comparisons are those of float, by the implicit conversion, and so
/// are operations with another number, whose result is a float.
template <class T>
class SmallFloat {
 public:
  DIST_HD static constexpr T from_bits(std::uint16_t bits) noexcept {
    T number{};
    number.bits_ = bits;
    return number;
  }
  [[nodiscard]] DIST_HD constexpr std::uint16_t bits() const noexcept { return bits_; }

  friend DIST_HD constexpr T operator+(T a, T b) noexcept { return T(float{a} + float{b}); }
  friend DIST_HD constexpr T operator-(T a, T b) noexcept { return T(float{a} - float{b}); }
  friend DIST_HD constexpr T operator*(T a, T b) noexcept { return T(float{a} * float{b}); }
  friend DIST_HD constexpr T operator/(T a, T b) noexcept { return T(float{a} / float{b}); }
  friend DIST_HD constexpr T operator-(T a) noexcept {
    return T::from_bits(static_cast<std::uint16_t>(a.bits() ^ 0x8000U));
  }
  friend DIST_HD constexpr T& operator+=(T& a, float b) noexcept { return a = T(float{a} + b); }
  friend DIST_HD constexpr T& operator-=(T& a, float b) noexcept { return a = T(float{a} - b); }
  friend DIST_HD constexpr T& operator*=(T& a, float b) noexcept { return a = T(float{a} * b); }
  friend DIST_HD constexpr T& operator/=(T& a, float b) noexcept { return a = T(float{a} / b); }

 protected:
  SmallFloat() = default;
  DIST_HD explicit constexpr SmallFloat(std::uint16_t bits) noexcept : bits_(bits) {}

  std::uint16_t bits_;
};

/// std::numeric_limits of a 16-bit type: `Digits` bits of precision, the leading one included, and an exponent whose
/// largest value is `MaxExponent` in the sense of numeric_limits.
template <class T, int Digits, int MaxExponent>
struct SmallFloatLimits : std::numeric_limits<float> {
  static constexpr int digits = Digits;
  static constexpr int digits10 = (Digits - 1) * 30103 / 100000;
  static constexpr int max_digits10 = Digits * 30103 / 100000 + 2;
  static constexpr int max_exponent = MaxExponent;
  static constexpr int min_exponent = 3 - MaxExponent;
  static constexpr int max_exponent10 = (MaxExponent * 30103 - 1) / 100000;
  static constexpr int min_exponent10 = -((MaxExponent - 2) * 30103 / 100000);

  static DIST_HD constexpr T min() noexcept { return of(one); }
  static DIST_HD constexpr T max() noexcept { return of(infinite - 1); }
  static DIST_HD constexpr T lowest() noexcept { return of(0x8000U | (infinite - 1)); }
  static DIST_HD constexpr T epsilon() noexcept {
    return of(static_cast<unsigned>(MaxExponent - Digits) << (Digits - 1));
  }
  static DIST_HD constexpr T round_error() noexcept { return T(0.5F); }
  static DIST_HD constexpr T denorm_min() noexcept { return of(1); }
  static DIST_HD constexpr T infinity() noexcept { return of(infinite); }
  static DIST_HD constexpr T quiet_NaN() noexcept { return of(infinite | (one >> 1)); }
  static DIST_HD constexpr T signaling_NaN() noexcept { return of(infinite | (one >> 2)); }

 private:
  static constexpr unsigned one = 1U << (Digits - 1);  // of the exponent
  static constexpr unsigned infinite = 0x8000U - one;
  static DIST_HD constexpr T of(unsigned bits) noexcept { return T::from_bits(static_cast<std::uint16_t>(bits)); }
};

}  // namespace dist::detail
