#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include <dist/core/type_traits.hpp>

namespace dist::data {

namespace detail {

/// A part of an example that is the same, or a view of it; a number does not become another one.
template <class Part, class View>
concept SeenAs = std::same_as<Part, View> ||(std::is_class_v<View>&& std::convertible_to<const Part&, View>);

}  // namespace detail

/// One example, or one batch of them: features `x` and what is to be predicted from them, `y`.
template <class X, class Y>
struct Example {
  X x;
  Y y;

  /// An example of tensors is taken where one of views of them is asked for, as a tensor is for a view of it.
  template <class U, class V>
    requires(detail::SeenAs<X, U>&& detail::SeenAs<Y, V>)
  [[nodiscard]] operator Example<U, V>() const& { return {x, y}; }
  template <class U, class V>
    requires(detail::SeenAs<X, U>&& detail::SeenAs<Y, V>)
  operator Example<U, V>() const&& = delete;  // the views would outlive what they show
};
template <class X, class Y>
Example(X, Y) -> Example<X, Y>;

namespace detail {

/// The types of the parts of what std::get takes apart, and of an Example.
template <class Whole>
struct PartsOf : std::type_identity<Whole> {};
template <class X, class Y>
struct PartsOf<Example<X, Y>> : std::type_identity<std::tuple<X, Y>> {};
template <class Whole>
using Parts = typename PartsOf<Whole>::type;

template <std::size_t I, class Whole>
[[nodiscard]] constexpr auto& part_of(Whole& whole) {
  if constexpr (dist::detail::is_specialization<std::remove_const_t<Whole>, Example>)
    return std::get<I>(std::tie(whole.x, whole.y));
  else
    return std::get<I>(whole);
}

}  // namespace detail

}  // namespace dist::data
