#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include <dist/core/config.hpp>
#include <dist/core/small_float.hpp>

namespace dist {

/// IEEE 754 binary16: 1 sign bit, 5 of exponent, 10 of mantissa. A type to store numbers in: it converts to float,
/// which every operation computes in. Conversion to it rounds to the nearest, ties to even; from 65520 on it is
/// infinity; a NaN stays one and becomes quiet.
class Float16 : public detail::SmallFloat<Float16> {
 public:
  Float16() = default;
  DIST_HD explicit constexpr Float16(float number) noexcept : SmallFloat(rounded(number)) {}
  template <detail::Narrowable Number>
    requires(!std::same_as<Number, float>)
  DIST_HD explicit constexpr Float16(Number number) noexcept : SmallFloat(rounded(detail::to_sticky_float(number))) {}
  explicit Float16(long double) = delete;

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
  /// A conditional expression that stays free of branches where an operand is the result of floating-point arithmetic,
  /// so that loops over conversions vectorise.
  DIST_HD static constexpr std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) noexcept {
    const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
    return (yes & mask) | (no & ~mask);
  }

  DIST_HD static constexpr std::uint16_t rounded(float number) noexcept {
    const auto bits = detail::bits_as<std::uint32_t>(number);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    const std::uint32_t normal = ((magnitude + 0x0fffU + ((magnitude >> 13) & 1U)) >> 13) - (112U << 10);
    // The last bit of a float near one half weighs as much as that of a denormal: the addition rounds.
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

template <>
struct std::numeric_limits<dist::Float16> : dist::detail::SmallFloatLimits<dist::Float16, 11, 16> {};

namespace dist {

/// The upper half of a float: 1 sign bit, 8 of exponent, 7 of mantissa. A type to store numbers in: it converts to
/// float, which every operation computes in. Conversion to it rounds to the nearest, ties to even; a NaN stays one and
/// becomes quiet.
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

template <>
struct std::numeric_limits<dist::BFloat16> : dist::detail::SmallFloatLimits<dist::BFloat16, 8, 128> {};
