#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <dist/core/config.hpp>

namespace dist::nn::detail {

/// 1 / sqrt(x) for finite x >= 0, to within a few units in the last place, of denormal numbers too. Finite for 0, NaN
/// for NaN. For infinity the iteration alternates between -infinity and infinity.
///
/// std::sqrt reports errors through errno, so that compilers leave it out of vector loops unless told
/// otherwise by a flag that a library cannot count on: optimizers then run 4 to 7 times slower. This is
/// Newton's iteration y (3 - x y^2) / 2 from the usual first guess, a linear function of the number's bits
/// (Lomont, "Fast inverse square root", 2003): plain arithmetic, which every compiler vectorises. (The
/// built-in bit cast, as std::bit_cast is no device function.) The guess needs a normal number: a smaller one is
/// scaled by a power of 4, and its root back.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T inverse_root_of_finite(T x) {
  constexpr bool is_single = sizeof(T) == 4;
  using Bits = std::conditional_t<is_single, std::uint32_t, std::uint64_t>;
  constexpr auto first_guess = static_cast<Bits>(is_single ? 0x5f375a86U : 0x5fe6eb50c7b537a9U);
  constexpr int mantissa_bits = std::numeric_limits<T>::digits - 1;
  constexpr Bits smallest_normal = Bits{1} << mantissa_bits;
  constexpr Bits half_scale = (is_single ? Bits{12} : Bits{27}) << mantissa_bits;  // in the exponent
  // All bits if x is denormal. By integers, as compilers make branches of two conditions on the same number.
  const Bits is_denormal = Bits{0} - ((__builtin_bit_cast(Bits, x) - smallest_normal) >> (8 * sizeof(T) - 1));
  const T normal = x * __builtin_bit_cast(T, __builtin_bit_cast(Bits, T{1}) + (is_denormal & (2 * half_scale)));
  const T half = T(0.5) * normal;
  T y = __builtin_bit_cast(T, first_guess - (__builtin_bit_cast(Bits, normal) >> 1));
  constexpr int iterations = is_single ? 3 : 4;
  for (int i = 0; i < iterations; ++i) y = y * (T(1.5) - (half * y) * y);  // half * y first: y * y may overflow
  return __builtin_bit_cast(T, __builtin_bit_cast(Bits, y) + (is_denormal & half_scale));
}

/// A variable, as device code calls no function of the standard library.
template <std::floating_point T>
inline constexpr T largest_finite = std::numeric_limits<T>::max();

/// 1 / sqrt(x) for x >= 0, as `inverse_root_of_finite`; 0 for infinity.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T inverse_root(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const Bits is_finite = static_cast<Bits>(x > largest_finite<T>) - Bits{1};  // all bits if so, or NaN
  return __builtin_bit_cast(T, __builtin_bit_cast(Bits, inverse_root_of_finite(x)) & is_finite);
}

/// sqrt(x) for x >= 0, with the same precision. 0 for 0, infinity for infinity.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T root(T x) {
  const T y = x * inverse_root_of_finite(x);
  return y < T{0} ? -y : y;
}

}  // namespace dist::nn::detail
