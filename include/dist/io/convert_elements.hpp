#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace dist::io {

namespace detail {

/// Whether it is neither infinite nor NaN.
[[nodiscard]] constexpr bool is_finite(double number) noexcept { return number - number == 0; }

template <std::integral Integer>
[[nodiscard]] constexpr bool is_negative(Integer number) noexcept {
  if constexpr (std::signed_integral<Integer>)
    return number < 0;
  else
    return false;
}

/// Whether a number of type `Integer` equals `number`.
template <std::integral Integer>
[[nodiscard]] constexpr bool is_held(double number) noexcept {
  constexpr auto least = static_cast<double>(std::numeric_limits<Integer>::min());
  constexpr double beyond = 2.0 * static_cast<double>(std::uint64_t{1} << (std::numeric_limits<Integer>::digits - 1));
  return number >= least && number < beyond && static_cast<double>(static_cast<Integer>(number)) == number;
}

/// Makes `to` of `from`, and returns whether it could.
template <class From, class To>
[[nodiscard]] constexpr bool convert_element(From from, To& to) noexcept {
  if constexpr (std::same_as<From, To>) {
    to = from;
    return true;
  } else if constexpr (std::integral<To> && std::integral<From>) {
    to = static_cast<To>(from);
    return static_cast<From>(to) == from && is_negative(to) == is_negative(from);
  } else if constexpr (std::integral<To>) {
    const double number = from;
    if constexpr (std::same_as<To, bool>) {
      to = number != 0;
      return number == 0 || number == 1;
    } else {
      if (!is_held<To>(number)) return false;
      to = static_cast<To>(number);
      return true;
    }
  } else {
    if constexpr (std::integral<From> || std::floating_point<From>)
      to = static_cast<To>(from);
    else
      to = static_cast<To>(static_cast<float>(from));
    return is_finite(to) || (!std::integral<From> && !is_finite(static_cast<double>(from)));
  }
}

}  // namespace detail

/// Makes each element of `to` of the element of `from` at its place. A floating-point result is the nearest number of its
/// type; every other one equals what it was made of, true being 1. Returns the index of the first element that has none,
/// such as 300 as an 8-bit integer, 0.5 as any integer, 2 as a bool, or 100'000 as a Float16; or the number of elements.
/// Infinite numbers and NaN are numbers of every floating-point type. Both have the same size.
template <class From, class To>
[[nodiscard]] constexpr std::size_t convert_elements(std::span<const From> from, std::span<To> to) {
  bool all = true;
  for (std::size_t i = 0; i < from.size(); ++i) all = detail::convert_element(from[i], to[i]) && all;
  if (all) return from.size();
  std::size_t first = 0;
  while (detail::convert_element(from[first], to[first])) ++first;
  return first;
}

}  // namespace dist::io
