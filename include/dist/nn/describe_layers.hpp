#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// A layer of a network, for reports.
struct LayerDescription {
  std::string name;                 ///< the prefix of its parameters' names: "conv2d_1"
  std::string kind;                 ///< "conv2d"
  std::vector<std::size_t> output;  ///< the shape of its output for one row
  std::size_t parameters = 0;       ///< number of trainable elements
  std::size_t kept = 0;             ///< number of other elements, such as moving averages
  std::size_t blocks = 1;           ///< number of equal blocks in it (Repeat)
  std::vector<std::string> inputs;  ///< the layers whose outputs it takes; empty for the network's input
};

namespace detail {

template <class L>
concept HasBranches = requires {
  typename L::Nets;
};

template <class L>
inline constexpr std::size_t blocks_of = 1;
template <HasBlocks L>
inline constexpr std::size_t blocks_of<L> = L::blocks;

/// A step of a walk through layers. A layer with branches is a `split`, each branch's layers and an `end_of_branch`,
/// and a `join`.
struct LayerFacts {
  enum Kind { layer, split, end_of_branch, join } kind;
  std::string_view name;
  Shape output;
  std::size_t parameters = 0;
  std::size_t kept = 0;
  std::size_t blocks = 1;
};

/// Writes the facts of these layers to `to` unless null. Returns their number.
template <class... Bound>
constexpr std::size_t list_facts(std::type_identity<std::tuple<Bound...>>, LayerFacts* to) {
  std::size_t count = 0;
  [[maybe_unused]] const auto add = [&](const LayerFacts& facts) {
    if (to != nullptr) to[count] = facts;
    ++count;
  };
  [[maybe_unused]] const auto elements_of = [](const auto& specs) {
    std::size_t elements = 0;
    for (const auto& spec : specs) elements += spec.shape.elements();
    return elements;
  };
  [[maybe_unused]] const auto add_layer = [&]<class L>(std::type_identity<L>) {
    if constexpr (HasBranches<L>) {
      add({LayerFacts::split, {}, {}});
      [&]<class... Net>(std::type_identity<std::tuple<Net...>>) {
        ((count += list_facts(std::type_identity<typename Net::Bound>{}, to == nullptr ? nullptr : to + count),
          add({LayerFacts::end_of_branch, {}, {}})),
         ...);
      }(std::type_identity<typename L::Nets>{});
      add({LayerFacts::join, L::name, L::Output::shape()});
    } else {
      add({LayerFacts::layer, L::name, L::Output::shape(), elements_of(L::parameters), elements_of(state_of<L>()),
           blocks_of<L>});
    }
  };
  (add_layer(std::type_identity<Bound>{}), ...);
  return count;
}
template <class Net>
inline constexpr auto facts_of = [] {
  constexpr std::type_identity<typename Net::Bound> layers;
  std::array<LayerFacts, list_facts(layers, nullptr)> facts{};
  list_facts(layers, facts.data());
  return facts;
}();
/// The names of all layers without branches.
template <class Leaves>
inline constexpr std::array<std::string_view, 0> leaf_names{};
template <class... Leaf>
inline constexpr std::array leaf_names<std::tuple<Leaf...>>{std::string_view{Leaf::name}...};

[[nodiscard]] std::vector<LayerDescription> describe(std::span<const std::string_view> leaves,
                                                     std::span<const LayerFacts> facts);

}  // namespace detail

/// Returns the layers of a network, a Sequential with an Input, in order.
template <class Net>
[[nodiscard]] std::vector<LayerDescription> describe_layers() {
  return detail::describe(detail::leaf_names<typename detail::AllLeaves<typename Net::Bound>::Type>,
                          detail::facts_of<Net>);
}

/// A network whose Architecture is a Sequential.
template <class Network>
concept KnowsLayers = requires {
  typename Network::Architecture::Bound;
};

/// Returns a table of layers with names, output shapes and parameters, and totals.
[[nodiscard]] std::string summary(std::span<const LayerDescription> layers);

}  // namespace dist::nn

#ifndef DIST_COMPILED
#include <dist/nn/describe_layers.ipp>
#endif
