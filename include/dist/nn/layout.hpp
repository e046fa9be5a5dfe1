#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/tensor.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/parameter.hpp>

namespace dist::nn::detail {

/// The two kinds of tensors that layers have in memory of the network.
struct Learned {
  template <class Layer>
  [[nodiscard]] static constexpr auto& specs() {
    return Layer::parameters;
  }
};
struct Kept {
  template <class Layer>
  [[nodiscard]] static constexpr auto& specs() {
    return state_of<Layer>();
  }
};

/// Where the tensors of one kind, of all layers, lie in one array, one after another.
template <class Kind, class Layers>
struct Layout : Layout<Kind, std::tuple<>> {};  // where a layer does not fit, which the layer itself has said
template <class Kind, class... Layers>
struct Layout<Kind, std::tuple<Layers...>> {
  static constexpr std::size_t layers = sizeof...(Layers);

  /// Where the tensors of a layer start in `tensors`; for `layers`, how many there are.
  static constexpr std::array<std::size_t, layers + 1> first = [] {
    std::array<std::size_t, layers + 1> starts{};
    [[maybe_unused]] std::size_t layer = 0;
    ((starts[layer + 1] = starts[layer] + Kind::template specs<Layers>().size(), ++layer), ...);
    return starts;
  }();

  /// Every tensor, in the order of the layers.
  static constexpr std::array<Parameter, first[layers]> tensors =
      []<class... Leaves>(std::type_identity<std::tuple<Leaves...>>) {
        std::array<Parameter, first[layers]> all{};
        const std::array<std::string_view, sizeof...(Leaves) + 1> names{Leaves::name..., std::string_view{}};
        std::size_t leaf = 0;
        std::size_t count = 0;
        std::size_t offset = 0;
        [[maybe_unused]] const auto add = [&](const auto& specs) {
          std::size_t ordinal = 0;
          for (std::size_t before = 0; before < leaf; ++before)
            if (names[before] == names[leaf]) ++ordinal;
          for (const auto& spec : specs) {
            all[count++] = Parameter{names[leaf], ordinal, spec.name, spec.shape, offset};
            offset += padded(spec.shape.elements());
          }
          ++leaf;
        };
        (add(Kind::template specs<Leaves>()), ...);
        return all;
      }(std::type_identity<typename AllLeaves<std::tuple<Layers...>>::Type>{});

  /// Whether no layer has a name twice that a program gave.
  static constexpr bool names_differ = []<class... Leaves>(std::type_identity<std::tuple<Leaves...>>) {
    const std::array<std::string_view, sizeof...(Leaves) + 1> names{Leaves::name..., std::string_view{}};
    const std::array<bool, sizeof...(Leaves) + 1> named{HasName<Leaves>..., false};
    for (std::size_t leaf = 0; leaf < sizeof...(Leaves); ++leaf)
      for (std::size_t other = 0; other < sizeof...(Leaves); ++other)
        if (named[leaf] && other != leaf && names[other] == names[leaf]) return false;
    return true;
  }(std::type_identity<typename AllLeaves<std::tuple<Layers...>>::Type>{});

  /// Elements of all tensors, and the elements that hold them with padding.
  static constexpr std::size_t count = [] {
    std::size_t elements = 0;
    for (const Parameter& tensor : tensors) elements += tensor.shape.elements();
    return elements;
  }();
  static constexpr std::size_t padded_count = [] {
    std::size_t elements = 0;
    for (const Parameter& tensor : tensors) elements += padded(tensor.shape.elements());
    return elements;
  }();

  /// The tensors of one layer, in the array of all, which is in `Where`.
  template <std::size_t Layer, dist::Place Where = HostMemory, class T>
  [[nodiscard]] static auto of_layer([[maybe_unused]] T* all) {
    return [&]<std::size_t... Which>(std::index_sequence<Which...>) {
      return ParameterViews<T, sizeof...(Which), Where>{
          TensorView<T, Where>{all + tensors[first[Layer] + Which].offset, tensors[first[Layer] + Which].shape}...};
    }
    (std::make_index_sequence<first[Layer + 1] - first[Layer]>{});
  }
};

}  // namespace dist::nn::detail
