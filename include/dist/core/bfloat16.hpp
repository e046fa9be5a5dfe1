#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include <dist/core/config.hpp>
#include <dist/core/small_float.hpp>

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
