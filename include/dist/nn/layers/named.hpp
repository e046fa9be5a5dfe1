#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <dist/nn/layer.hpp>
#include <dist/nn/sequential.hpp>

namespace dist::nn {

namespace detail {

/// Text as a template argument.
template <std::size_t Size>
struct LayerName {
  char text[Size] = {};
  constexpr LayerName(const char (&characters)[Size]) {
    for (std::size_t i = 0; i < Size; ++i) text[i] = characters[i];
  }
  [[nodiscard]] constexpr std::string_view view() const { return {text, Size - 1}; }
};

/// "scope/name".
template <LayerName Scope, class L>
struct ScopedName {
  static constexpr auto characters = [] {
    std::array<char, Scope.view().size() + 1 + L::name.size()> all{};
    std::size_t next = 0;
    for (const char character : Scope.view()) all[next++] = character;
    all[next++] = '/';
    for (const char character : L::name) all[next++] = character;
    return all;
  }();
  static constexpr std::string_view value{characters.data(), characters.size()};
};

/// A placed layer under a name, and one in a scope.
template <LayerName Name, class L>
struct PlacedNamed : L {
  static constexpr std::string_view name = Name.view();
  static constexpr bool is_named = true;
};
template <LayerName Scope, class L>
struct PlacedScoped : L {
  static constexpr std::string_view name = ScopedName<Scope, L>::value;
};

/// The same of a layer of layers, whose leaves are in the scope.
template <LayerName Scope, class Leaves>
struct ScopedLeaves;
template <LayerName Scope, class... Leaf>
struct ScopedLeaves<Scope, std::tuple<Leaf...>> {
  using Type = std::tuple<PlacedScoped<Scope, Leaf>...>;
};
template <LayerName Name, HasLeaves L>
struct PlacedNamed<Name, L> : L {
  static constexpr std::string_view name = Name.view();
  using Leaves = typename ScopedLeaves<Name, typename L::Leaves>::Type;
};
template <LayerName Scope, HasLeaves L>
struct PlacedScoped<Scope, L> : L {
  using Leaves = typename ScopedLeaves<Scope, typename L::Leaves>::Type;
};

/// A layer in scopes, the outermost first.
template <class L, LayerName... Scopes>
struct Scoped;
template <class L>
struct Scoped<L> {
  template <class In>
  using On = typename L::template On<In>;
};
template <class L, LayerName Outermost, LayerName... Scopes>
struct Scoped<L, Outermost, Scopes...> {
  template <class In>
  using On = PlacedScoped<Outermost, typename Scoped<L, Scopes...>::template On<In>>;
};

}  // namespace detail

/// A layer under a name of its own: its parameters are "stem/kernel" instead of "conv2d_3/kernel", whatever layers come
/// before it. For a Sequential, or a layer of layers such as Add, the name is that of a scope, in which layers are counted
/// by themselves: "stem/conv2d/kernel", "stem/conv2d_1/kernel". So a layer that is put in elsewhere renames nothing that
/// was saved. Two layers of one name do not compile; scopes of one name are one scope.
template <detail::LayerName Name, class L>
struct Named {
  static_assert(!Name.view().empty(), "nn::Named needs a name of at least one character");

  template <class In>
  using On = detail::PlacedNamed<Name, typename L::template On<In>>;
};
template <detail::LayerName Name, class... Layers>
struct Named<Name, Sequential<Layers...>> {};

namespace detail {

template <class In, LayerName Name, class... Inner, class... Rest>
struct Place<In, Named<Name, Sequential<Inner...>>, Rest...> : Place<In, Scoped<Inner, Name>..., Rest...> {
  static_assert(!Name.view().empty(), "nn::Named needs a name of at least one character");
};
template <class In, LayerName... Scopes, class... Inner, class... Rest>
struct Place<In, Scoped<Sequential<Inner...>, Scopes...>, Rest...> : Place<In, Scoped<Inner, Scopes...>..., Rest...> {};
template <class In, LayerName... Scopes, LayerName Name, class... Inner, class... Rest>
struct Place<In, Scoped<Named<Name, Sequential<Inner...>>, Scopes...>, Rest...>
    : Place<In, Scoped<Inner, Scopes..., Name>..., Rest...> {};

}  // namespace detail

}  // namespace dist::nn
