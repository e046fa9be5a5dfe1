/// Common parts of the 16-bit floating-point types: arithmetic in float, and numeric limits.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <dist/core/config.hpp>

namespace dist {

namespace detail {

/// std::bit_cast, which device code may not call.
template <class To, class From>
[[nodiscard]] DIST_HD constexpr To bits_as(From from) noexcept {
  return __builtin_bit_cast(To, from);
}

/// A number that converts to a 16-bit type: all arithmetic types of at most 64 bits.
template <class Number>
concept Narrowable = std::is_arithmetic_v<Number> && sizeof(Number) <= 8;

/// Converts `number` to float with rounding to odd: the last bit is set if the result is inexact. Rounding it again to
/// 16 bits then gives the same result as rounding `number` directly.
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
  // A double has 53 bits: the lower bits are combined into one sticky bit.
  if ((magnitude >> 53) != 0)
    magnitude = (magnitude & ~std::uint64_t{0x7ff}) | ((magnitude & 0x7ff) != 0 ? 0x800U : 0U);
  const auto exact = static_cast<double>(magnitude);
  return to_sticky_float(negative ? -exact : exact);
}

/// The bits and the arithmetic of a 16-bit type `T`, which converts to and from float. Operations are computed in
/// float, which is wide enough for correct rounding. Comparisons and operations with other numbers convert to float.
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

/// std::numeric_limits of a 16-bit type with `Digits` bits of precision, including the leading one, and the
/// `max_exponent` `MaxExponent`.
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

}  // namespace detail

/// IEEE 754 binary16 (1 sign, 5 exponent, 10 mantissa bits), a storage type: arithmetic is done in float. Conversion
/// rounds to nearest, ties to even; magnitudes of 65520 and more become infinity; NaNs become quiet.
class Float16 : public detail::SmallFloat<Float16> {
 public:
  Float16() = default;
  /// Rounds `number`.
  DIST_HD explicit constexpr Float16(float number) noexcept : SmallFloat(rounded(number)) {}
  /// Rounds `number` once, and not first to float.
  template <detail::Narrowable Number>
    requires(!std::same_as<Number, float>)
  DIST_HD explicit constexpr Float16(Number number) noexcept : SmallFloat(rounded(detail::to_sticky_float(number))) {}
  explicit Float16(long double) = delete;

  /// The exact value.
  DIST_HD constexpr operator float() const noexcept {
    const std::uint32_t sign = (bits_ & 0x8000U) << 16;
    const std::uint32_t magnitude = bits_ & 0x7fffU;
    const std::uint32_t rebias = magnitude >= 0x7c00U ? 0x70000000U : 0x38000000U;
    const std::uint32_t normal = (magnitude << 13) + rebias;
    const auto denormal =
        detail::bits_as<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
    return detail::bits_as<float>(sign | select(magnitude < 0x0400U, denormal, normal));
  }

 private:
  /// A branch-free conditional, including for operands that are results of floating-point arithmetic, so that
  /// conversion loops vectorise.
  DIST_HD static constexpr std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) noexcept {
    const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
    return (yes & mask) | (no & ~mask);
  }

  DIST_HD static constexpr std::uint16_t rounded(float number) noexcept {
    const auto bits = detail::bits_as<std::uint32_t>(number);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    const std::uint32_t normal = ((magnitude + 0x0fffU + ((magnitude >> 13) & 1U)) >> 13) - (112U << 10);
    // The last bit of a float near one half has the weight of a denormal's last bit: the addition rounds.
    const std::uint32_t below_normal = select(magnitude < 0x38800000U, magnitude, 0U);
    const std::uint32_t denormal =
        detail::bits_as<std::uint32_t>(detail::bits_as<float>(below_normal) + 0.5F) - 0x3f000000U;
    const std::uint32_t nan = 0x7e00U | ((magnitude >> 13) & 0x03ffU);
    const std::uint32_t finite = select(magnitude < 0x38800000U, denormal, normal);
    const std::uint32_t special = magnitude <= 0x7f800000U ? 0x7c00U : nan;
    return static_cast<std::uint16_t>(sign | select(magnitude < 0x477ff000U, finite, special));
  }
};

}  // namespace dist

/// @cond
template <>
struct std::numeric_limits<dist::Float16> : dist::detail::SmallFloatLimits<dist::Float16, 11, 16> {};
/// @endcond

namespace dist {

/// The upper half of a float (1 sign, 8 exponent, 7 mantissa bits), a storage type: arithmetic is done in float.
/// Conversion rounds to nearest, ties to even; NaNs become quiet.
class BFloat16 : public detail::SmallFloat<BFloat16> {
 public:
  BFloat16() = default;
  DIST_HD explicit constexpr BFloat16(float number) noexcept : SmallFloat(rounded(number)) {}
  template <detail::Narrowable Number>
    requires(!std::same_as<Number, float>)
  DIST_HD explicit constexpr BFloat16(Number number) noexcept : SmallFloat(rounded(detail::to_sticky_float(number))) {}
  explicit BFloat16(long double) = delete;

  DIST_HD constexpr operator float() const noexcept {
    return detail::bits_as<float>(static_cast<std::uint32_t>(bits_) << 16);
  }

 private:
  DIST_HD static constexpr std::uint16_t rounded(float number) noexcept {
    const auto bits = detail::bits_as<std::uint32_t>(number);
    const std::uint32_t nearest = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t nan = (bits >> 16) | 0x0040U;
    return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? nan : nearest);
  }
};

}  // namespace dist

/// @cond
template <>
struct std::numeric_limits<dist::BFloat16> : dist::detail::SmallFloatLimits<dist::BFloat16, 8, 128> {};
/// @endcond
