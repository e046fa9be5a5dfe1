#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::nn {

/// A number in functors: floating-point, or a traced array for XLA with its own Boolean type.
template <class T>
concept Real = std::floating_point<T> || requires {
  typename T::template With<bool>;
};

namespace detail {

/// Returns `yes` or `no`. Traced numbers overload it.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T select(bool condition, T yes, T no) {
  return condition ? yes : no;
}

/// Returns the greater number; NaN if one is NaN.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T greater(T a, T b) {
  return Max{}(a, b);
}

/// Converts a number to double for a sum; traced numbers keep their type.
template <class T>
  requires std::floating_point<Accumulator<T>>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr double as_double(T number) { return static_cast<double>(number); }

}  // namespace detail

}  // namespace dist::nn

namespace dist::nn::detail {

/// Returns 1 / sqrt(x) for finite x >= 0 to within a few units in the last place, also for denormal x. Finite for 0,
/// NaN for NaN; for infinity the iteration alternates between -infinity and infinity.
///
/// std::sqrt sets errno, so compilers need a flag to vectorise it, and without it optimizers run 4 to 7 times slower.
/// This is Newton's iteration y (3 - x y^2) / 2 from the usual first guess, linear in the number's bits (Lomont, "Fast
/// inverse square root", 2003): plain arithmetic, which every compiler vectorises. (std::bit_cast is not a device
/// function, hence the built-in.) A denormal x is scaled by a power of 4, and the result scaled back.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T inverse_root_of_finite(T x) {
  constexpr bool is_single = sizeof(T) == 4;
  using Bits = std::conditional_t<is_single, std::uint32_t, std::uint64_t>;
  constexpr auto first_guess = static_cast<Bits>(is_single ? 0x5f375a86U : 0x5fe6eb50c7b537a9U);
  constexpr int mantissa_bits = std::numeric_limits<T>::digits - 1;
  constexpr Bits smallest_normal = Bits{1} << mantissa_bits;
  constexpr Bits half_scale = (is_single ? Bits{12} : Bits{27}) << mantissa_bits;  // in the exponent
  // All bits if x is denormal. By integers, because two conditions on one number become branches.
  const Bits is_denormal = Bits{0} - ((__builtin_bit_cast(Bits, x) - smallest_normal) >> (8 * sizeof(T) - 1));
  const T normal = x * __builtin_bit_cast(T, __builtin_bit_cast(Bits, T{1}) + (is_denormal & (2 * half_scale)));
  const T half = T(0.5) * normal;
  T y = __builtin_bit_cast(T, first_guess - (__builtin_bit_cast(Bits, normal) >> 1));
  constexpr int iterations = is_single ? 3 : 4;
  for (int i = 0; i < iterations; ++i) y = y * (T(1.5) - (half * y) * y);  // half * y first: y * y may overflow
  return __builtin_bit_cast(T, __builtin_bit_cast(Bits, y) + (is_denormal & half_scale));
}

/// A variable, because device code cannot call the standard library.
template <std::floating_point T>
inline constexpr T largest_finite = std::numeric_limits<T>::max();

/// Returns 1 / sqrt(x) for x >= 0, as precisely as `inverse_root_of_finite`; 0 for infinity.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T inverse_root(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const Bits is_finite = static_cast<Bits>(x > largest_finite<T>) - Bits{1};  // all bits if finite or NaN
  return __builtin_bit_cast(T, __builtin_bit_cast(Bits, inverse_root_of_finite(x)) & is_finite);
}

/// Returns sqrt(x) for x >= 0, as precisely; 0 for 0, infinity for infinity.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T root(T x) {
  const T y = x * inverse_root_of_finite(x);
  return y < T{0} ? -y : y;
}

}  // namespace dist::nn::detail
