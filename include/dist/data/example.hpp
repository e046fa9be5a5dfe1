#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include <dist/core/type_traits.hpp>

namespace dist::data {

namespace detail {

/// `Part` is `View`, or a class that converts to it, such as a tensor to a view. Numbers are not converted.
template <class Part, class View>
concept SeenAs = std::same_as<Part, View> ||(std::is_class_v<View>&& std::convertible_to<const Part&, View>);

}  // namespace detail

/// One example, or a batch of examples: features `x` and target `y`.
template <class X, class Y>
struct Example {
  X x;  ///< features
  Y y;  ///< target

  /// Converts an example of tensors to an example of views.
  template <class U, class V>
    requires(detail::SeenAs<X, U>&& detail::SeenAs<Y, V>)
  [[nodiscard]] operator Example<U, V>() const& { return {x, y}; }
  template <class U, class V>
    requires(detail::SeenAs<X, U>&& detail::SeenAs<Y, V>)
  operator Example<U, V>() const&& = delete;  // the views would dangle
};
/// Deduces the types of the parts.
template <class X, class Y>
Example(X, Y) -> Example<X, Y>;

namespace detail {

/// The types of the parts of an Example, or of a type that std::get supports, as a tuple-like type.
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

/// Calls `function.operator()<I...>()` with the indices of all parts of a `Whole`.
template <class Whole>
constexpr decltype(auto) over_parts(auto&& function) {
  return [&]<std::size_t... I>(std::index_sequence<I...>)->decltype(auto) {
    return function.template operator()<I...>();
  }
  (std::make_index_sequence<std::tuple_size_v<Parts<Whole>>>{});
}

template <template <class> class Change, class X, class Y>
Example<Change<X>, Change<Y>> changed_parts(std::type_identity<Example<X, Y>>);
template <template <class> class Change, class First, class... Rest>
std::tuple<Change<First>, Change<Rest>...> changed_parts(std::type_identity<std::tuple<First, Rest...>>);
template <template <class> class Change, class A, class B>
std::pair<Change<A>, Change<B>> changed_parts(std::type_identity<std::pair<A, B>>);
template <template <class> class Change, class T, std::size_t size>
  requires(size > 0)
std::array<Change<T>, size> changed_parts(std::type_identity<std::array<T, size>>);

/// A structure like `Whole`, with `Change<Part>` in place of each part.
template <class Whole, template <class> class Change>
using WithParts = decltype(changed_parts<Change>(std::type_identity<Whole>{}));

/// An Example, std::tuple, std::pair or std::array with parts.
template <class Whole>
concept HasParts = requires {
  typename WithParts<Whole, std::type_identity_t>;
};

}  // namespace detail

}  // namespace dist::data
