#pragma once

#include <concepts>
#include <cstdint>

#include <dist/core/config.hpp>

namespace dist::nn::detail {

/// 1 / sqrt(x) for x >= 0, to within a few units in the last place for normal x; finite, and at most that,
/// below.
///
/// std::sqrt reports errors through errno, so that compilers leave it out of vector loops unless told
/// otherwise by a flag that a library cannot count on: optimizers then run 4 to 7 times slower. This is
/// Newton's iteration y (3 - x y^2) / 2 from the usual first guess, a linear function of the number's bits
/// (Lomont, "Fast inverse square root", 2003): plain arithmetic, which every compiler vectorises. (The
/// built-in bit cast, as std::bit_cast is no device function.)
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T inverse_root(T x) {
  constexpr bool is_single = sizeof(T) == 4;
  const T half = T(0.5) * x;
  T y;
  if constexpr (is_single) {
    y = __builtin_bit_cast(T, 0x5f375a86U - (__builtin_bit_cast(std::uint32_t, x) >> 1));
  } else {
    y = __builtin_bit_cast(T, 0x5fe6eb50c7b537a9U - (__builtin_bit_cast(std::uint64_t, x) >> 1));
  }
  constexpr int iterations = is_single ? 3 : 4;
  for (int i = 0; i < iterations; ++i) y = y * (T(1.5) - (half * y) * y);  // half * y first: y * y may overflow
  return y;
}

/// sqrt(x) for x >= 0, as `inverse_root`. 0 for 0.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T root(T x) {
  return x * inverse_root(x);
}

}  // namespace dist::nn::detail
