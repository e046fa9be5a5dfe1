#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// A layer of a network, as people read it.
struct LayerDescription {
  std::string name;                 ///< as in the names of its parameters: "conv2d_1"
  std::string kind;                 ///< "conv2d"
  std::vector<std::size_t> output;  ///< the extents of its output for one row
  std::size_t parameters = 0;       ///< elements that are learnt
  std::size_t kept = 0;             ///< elements that it keeps besides, such as moving averages
  std::vector<std::string> inputs;  ///< the names of the layers whose outputs it takes; none: the network's input
};

namespace detail {

template <class L>
concept HasBranches = requires {
  typename L::Nets;
};

/// Walks through the layers of a network, those of branches before what joins them.
class LayerList {
 public:
  template <class... Leaves>
  explicit LayerList(std::type_identity<std::tuple<Leaves...>>) {
    (names_.push_back(unique(Leaves::name)), ...);
  }

  /// Adds the layers of a network on the output of layer `input`. Returns the name of the last one.
  template <class... Bound>
  std::string add_all(std::type_identity<std::tuple<Bound...>>, std::string input) {
    ((input = add<Bound>(std::move(input))), ...);
    return input;
  }
  [[nodiscard]] std::vector<LayerDescription> take() { return std::move(layers_); }

 private:
  /// A name that no layer before has.
  std::string unique(std::string_view name) {
    const auto same = std::count(taken_.begin(), taken_.end(), name);
    taken_.emplace_back(name);
    return same == 0 ? std::string{name} : concat(name, "_", same);
  }
  template <class Specs>
  static std::size_t elements_of(const Specs& specs) {
    std::size_t elements = 0;
    for (const auto& spec : specs) elements += spec.shape.elements();
    return elements;
  }
  template <class L>
  std::string add(std::string input) {
    LayerDescription layer;
    if constexpr (HasBranches<L>) {
      [&]<class... Net>(std::type_identity<std::tuple<Net...>>) {
        (layer.inputs.push_back(add_all(std::type_identity<typename Net::Bound>{}, input)), ...);
      }(std::type_identity<typename L::Nets>{});
      layer.name = unique(L::name);
    } else {
      layer.name = names_[next_leaf_++];
      layer.parameters = elements_of(L::parameters);
      layer.kept = elements_of(state_of<L>());
      layer.inputs.push_back(std::move(input));
    }
    std::erase(layer.inputs, std::string{});
    const std::string_view last_part = L::name.substr(L::name.find_last_of('/') + 1);
    layer.kind = last_part;
    const Shape shape = L::Output::shape();
    layer.output.assign(shape.extents().begin(), shape.extents().end());
    layers_.push_back(layer);
    return layer.name;
  }

  std::vector<std::string> taken_;
  std::vector<std::string> names_;  // of the leaves, in order
  std::size_t next_leaf_ = 0;
  std::vector<LayerDescription> layers_;
};

}  // namespace detail

/// The layers of a network, a Sequential with an Input, in the order in which they compute.
template <class Net>
[[nodiscard]] std::vector<LayerDescription> describe_layers() {
  detail::LayerList list{std::type_identity<typename detail::AllLeaves<typename Net::Bound>::Type>{}};
  static_cast<void>(list.add_all(std::type_identity<typename Net::Bound>{}, std::string{}));
  return list.take();
}

/// A network whose layers are known, as those of nn::Network are: its Architecture is a Sequential.
template <class Network>
concept KnowsLayers = requires {
  typename Network::Architecture::Bound;
};

/// A table of layers: their names, the shapes of their outputs, of any number of rows, and how many parameters they have;
/// and what these are together.
[[nodiscard]] inline std::string summary(std::span<const LayerDescription> layers) {
  struct Row {
    std::string name, output, parameters;
  };
  std::vector<Row> rows{{"Layer", "Output shape", "Parameters"}};
  std::size_t learnt = 0;
  std::size_t kept = 0;
  for (const LayerDescription& layer : layers) {
    std::string output = "(rows";
    for (const std::size_t extent : layer.output) output += concat(", ", extent);
    std::string name = layer.name;
    if (layer.inputs.size() > 1)
      for (std::size_t i = 0; i < layer.inputs.size(); ++i) name += concat(i == 0 ? " of " : ", ", layer.inputs[i]);
    rows.push_back({std::move(name), output + ")", concat(layer.parameters + layer.kept)});
    learnt += layer.parameters;
    kept += layer.kept;
  }
  std::size_t widths[3] = {};
  for (const Row& row : rows) {
    widths[0] = std::max(widths[0], row.name.size());
    widths[1] = std::max(widths[1], row.output.size());
    widths[2] = std::max(widths[2], row.parameters.size());
  }
  const auto left = [](const std::string& cell, std::size_t width) {
    return cell + std::string(width - cell.size(), ' ');
  };
  std::string table;
  for (const Row& row : rows) {
    table += concat(left(row.name, widths[0]), "  ", left(row.output, widths[1]), "  ",
                    std::string(widths[2] - row.parameters.size(), ' '), row.parameters, "\n");
    if (&row == rows.data()) table += std::string(widths[0] + widths[1] + widths[2] + 4, '-') + "\n";
  }
  table += concat("Parameters: ", learnt + kept, ", of which are learnt: ", learnt, "\n");
  return table;
}

}  // namespace dist::nn
