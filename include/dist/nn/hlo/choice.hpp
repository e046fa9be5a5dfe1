#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/traced.hpp>

namespace dist::hlo {

// The functions that formulas call on traced arrays, in addition to hlo::select and <cmath>. For host numbers see
// nn/choice.hpp and nn/values.hpp.

/// Returns the greater of both, element by element.
template <class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> greater(Traced<T, Extents...> a, Traced<T, Extents...> b) {
  return max(a, b);
}
/// Returns the greater of both, element by element.
template <class T>
[[nodiscard]] Dynamic<T> greater(Dynamic<T> a, Dynamic<T> b) {
  return max(a, b);
}

/// Returns exp(x), and 0 where `left_out` is true.
template <class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> exp_unless(Traced<bool, Extents...> left_out, Traced<T, Extents...> x) {
  return select(left_out, Traced<T, Extents...>{0}, exp(x));
}
/// Sums in a program keep their type.
template <class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> as_double(Traced<T, Extents...> number) {
  return number;
}
/// 1 or 0.
template <std::size_t... Extents>
[[nodiscard]] Traced<double, Extents...> number_of(Traced<bool, Extents...> condition) {
  return condition.template as<double>();
}
/// The index of a bin, from a condition or a non-negative number.
template <class T, std::size_t... Extents>
[[nodiscard]] Traced<std::int32_t, Extents...> bin_of(Traced<T, Extents...> number) {
  return number.template as<std::int32_t>();
}

}  // namespace dist::hlo
