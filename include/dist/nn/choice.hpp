#pragma once

#include <concepts>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::nn {

/// What functors compute with: numbers, or arrays of numbers that are known later, as those of programs for XLA, which have a
/// type of conditions.
template <class T>
concept Real = std::floating_point<T> || requires {
  typename T::template With<bool>;
};

namespace detail {

/// `yes` or `no`, by a function, because a type of numbers whose comparisons are known later has one of its own.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T select(bool condition, T yes, T no) {
  return condition ? yes : no;
}

/// The greater number; NaN where one of them is.
template <std::floating_point T>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr T greater(T a, T b) {
  return Max{}(a, b);
}

/// A number for a sum in double; a sum of a program keeps its type.
template <class T>
  requires std::floating_point<Accumulator<T>>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE constexpr double as_double(T number) { return static_cast<double>(number); }

}  // namespace detail

}  // namespace dist::nn
