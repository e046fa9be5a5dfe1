#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>

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
/// Text as a type, because nvcc's front end cannot find specialisations for values of class type.
template <LayerName Name>
struct TextOf {
  static constexpr std::string_view value = Name.view();
};

/// "scope/name".
template <class Scope, class L>
struct ScopedName {
  static constexpr auto characters = [] {
    std::array<char, Scope::value.size() + 1 + L::name.size()> all{};
    std::size_t next = 0;
    for (const char character : Scope::value) all[next++] = character;
    all[next++] = '/';
    for (const char character : L::name) all[next++] = character;
    return all;
  }();
  static constexpr std::string_view value{characters.data(), characters.size()};
};

/// A bound layer with a name.
template <class Name, class L>
struct BoundNamed : L {
  static constexpr std::string_view name = Name::value;
  static constexpr bool is_named = true;
};
/// A bound layer with a scope in its name.
template <class Scope, class L>
struct BoundScoped : L {
  static constexpr std::string_view name = ScopedName<Scope, L>::value;
};

/// A composite layer's leaves in a scope.
template <class Scope, class Leaves>
struct ScopedLeaves;
template <class Scope, class... Leaf>
struct ScopedLeaves<Scope, std::tuple<Leaf...>> {
  using Type = std::tuple<BoundScoped<Scope, Leaf>...>;
};
template <class Name, HasLeaves L>
struct BoundNamed<Name, L> : L {
  static constexpr std::string_view name = Name::value;
  using Leaves = typename ScopedLeaves<Name, typename L::Leaves>::Type;
};
template <class Scope, HasLeaves L>
struct BoundScoped<Scope, L> : L {
  using Leaves = typename ScopedLeaves<Scope, typename L::Leaves>::Type;
};

/// A bound Sequential whose layers are in a scope.
template <class Scope, HasGroup L>
struct BoundScoped<Scope, L> {
  using Group = typename ScopedLeaves<Scope, typename L::Group>::Type;
  using Output = typename L::Output;
};
template <class Name, HasGroup L>
struct BoundNamed<Name, L> : BoundScoped<Name, L> {};
template <class Scope, class L>
struct Scoped {
  template <class In>
  using On = BoundScoped<Scope, typename L::template On<In>>;
};
template <class Scope, HasParts L>
struct Scoped<Scope, L> {};
template <class Scope, HasLayers L>
struct Scoped<Scope, L> {
  template <class In>
  using Layers = Scoped<Scope, typename LayersOf<L, In>::Type>;
};
template <class Scope, class Parts>
struct ScopedParts;
template <class Scope, class... Part>
struct ScopedParts<Scope, std::tuple<Part...>> {
  using Type = std::tuple<Scoped<Scope, Part>...>;
};
template <class Scope, HasParts L>
struct PartsOf<Scoped<Scope, L>> : ScopedParts<Scope, typename PartsOf<L>::Type> {};

/// A layer with a name; for a Sequential or a block the name is a scope.
template <class Name, class L>
struct NamedLayer {
  static_assert(!Name::value.empty(), "nn::Named needs a name of at least one character");
  template <class In>
  using On = BoundNamed<Name, typename L::template On<In>>;
};
template <class Name, class L>
  requires HasParts<L> || HasLayers<L>
struct NamedLayer<Name, L> {
  static_assert(!Name::value.empty(), "nn::Named needs a name of at least one character");
  template <class In>
  struct On {
    using Group = typename BindLayers<std::tuple<>, In, Scoped<Name, L>>::Type;
    using Output = typename NetworkOn<In, L>::OutputShape;
  };
};

}  // namespace detail

/// Gives a layer a fixed name, whatever its position: its parameters are "stem/kernel" instead of "conv2d_3/kernel".
/// For a Sequential, a block with `Layers<In>` or a composite layer like Add, the name is a scope with separate numbers:
/// "stem/conv2d/kernel", "stem/conv2d_1/kernel". The name of a Repeat precedes the numbers of its blocks. So layers
/// added elsewhere do not rename saved parameters. Two layers of one name, including automatic ones like "conv2d_3", do
/// not compile; scopes of one name are merged.
template <detail::LayerName Name, class L>
struct Named : detail::NamedLayer<detail::TextOf<Name>, L> {};

}  // namespace dist::nn
