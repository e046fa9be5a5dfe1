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

/// The two kinds of layers' tensors in the network's memory.
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

/// Returns for each layer how many earlier ones have its name.
template <std::size_t Count>
[[nodiscard]] constexpr std::array<std::size_t, Count> ordinals_of(const std::array<std::string_view, Count>& names) {
  std::array<std::size_t, Count> ordinals{};
  for (std::size_t layer = 0; layer < Count; ++layer)
    for (std::size_t before = 0; before < layer; ++before)
      if (names[before] == names[layer]) ++ordinals[layer];
  return ordinals;
}

/// True if `name` is Parameter's name for number `ordinal` of the layers named `of`, such as "dense_1".
[[nodiscard]] constexpr bool is_numbered(std::string_view name, std::string_view of, std::size_t ordinal) {
  if (ordinal == 0) return name == of;
  for (; ordinal > 0; ordinal /= 10) {
    if (name.empty() || name.back() != static_cast<char>('0' + ordinal % 10)) return false;
    name.remove_suffix(1);
  }
  return name.size() == of.size() + 1 && name.back() == '_' && name.substr(0, of.size()) == of;
}

/// True if `name` begins like the names of the tensors in the blocks of a layer named `of`, "of/3".
[[nodiscard]] constexpr bool is_in_block(std::string_view name, std::string_view of) {
  if (name.size() < of.size() + 2 || name.substr(0, of.size()) != of || name[of.size()] != '/') return false;
  const char first = name[of.size() + 1];
  return '0' <= first && first <= '9';
}

/// The places of all layers' tensors of one kind in one array, in order.
/// @cond
template <class Kind, class Layers>
struct Layout : Layout<Kind, std::tuple<>> {};  // if a layer does not fit, which the layer itself reports
/// @endcond
template <class Kind, class... Layers>
struct Layout<Kind, std::tuple<Layers...>> {
  static constexpr std::size_t layers = sizeof...(Layers);

  /// First tensor of each layer in `tensors`; for `layers`, the total number.
  static constexpr std::array<std::size_t, layers + 1> first = [] {
    std::array<std::size_t, layers + 1> starts{};
    [[maybe_unused]] std::size_t layer = 0;
    ((starts[layer + 1] = starts[layer] + Kind::template specs<Layers>().size(), ++layer), ...);
    return starts;
  }();

  /// All tensors, in the order of the layers.
  static constexpr std::array<Parameter, first[layers]> tensors =
      []<class... Leaves>(std::type_identity<std::tuple<Leaves...>>) {
        std::array<Parameter, first[layers]> all{};
        const std::array<std::string_view, sizeof...(Leaves) + 1> names{Leaves::name..., std::string_view{}};
        const auto ordinals = ordinals_of(names);
        std::size_t leaf = 0;
        std::size_t count = 0;
        std::size_t offset = 0;
        [[maybe_unused]] const auto add = [&](const auto& specs) {
          for (const auto& spec : specs) {
            all[count++] = Parameter{names[leaf], ordinals[leaf], spec.name, spec.shape, offset};
            offset += padded(spec.shape.elements());
          }
          ++leaf;
        };
        (add(Kind::template specs<Leaves>()), ...);
        return all;
      }(std::type_identity<typename AllLeaves<std::tuple<Layers...>>::Type>{});

  /// True if the names given by the program differ from all other names, including generated ones.
  static constexpr bool names_differ = []<class... Leaves>(std::type_identity<std::tuple<Leaves...>>) {
    const std::array<std::string_view, sizeof...(Leaves) + 1> names{Leaves::name..., std::string_view{}};
    const std::array<bool, sizeof...(Leaves) + 1> named{HasName<Leaves>..., false};
    const std::array<bool, sizeof...(Leaves) + 1> have_blocks{HasBlocks<Leaves>..., false};
    const auto ordinals = ordinals_of(names);
    for (std::size_t leaf = 0; leaf < sizeof...(Leaves); ++leaf)
      for (std::size_t other = 0; other < sizeof...(Leaves); ++other)
        if (other != leaf && ((named[leaf] && (names[other] == names[leaf] ||
                                               is_numbered(names[leaf], names[other], ordinals[other]))) ||
                              (have_blocks[leaf] && is_in_block(names[other], names[leaf]))))
          return false;
    return true;
  }(std::type_identity<typename AllLeaves<std::tuple<Layers...>>::Type>{});

  /// Elements of all tensors, without and with padding.
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

  /// Returns the offset of a tensor; for their number, the size of the array.
  [[nodiscard]] static constexpr std::size_t offset_of([[maybe_unused]] std::size_t tensor) {
    if constexpr (tensors.size() > 0)
      if (tensor < tensors.size()) return tensors[tensor].offset;
    return padded_count;
  }

  /// Returns one layer's tensors in array `all`, which is in `Where`; for a layer of blocks, one view of all of them.
  template <std::size_t Layer, dist::MemorySpace Where = HostMemory, class T>
  [[nodiscard]] static auto of_layer([[maybe_unused]] T* all) {
    constexpr std::size_t begin = offset_of(first[Layer]), size = offset_of(first[Layer + 1]) - begin;
    if constexpr (HasBlocks<std::tuple_element_t<Layer, std::tuple<Layers...>>> && size > 0) {
      return ParameterViews<T, 1, Where>{TensorView<T, Where>{all + begin, Shape{size}}};
    } else {
      return [&]<std::size_t... Which>(std::index_sequence<Which...>) {
        return ParameterViews<T, sizeof...(Which), Where>{
            TensorView<T, Where>{all + tensors[first[Layer] + Which].offset, tensors[first[Layer] + Which].shape}...};
      }
      (std::make_index_sequence<first[Layer + 1] - first[Layer]>{});
    }
  }
};

/// The specs of all leaves' tensors of one kind, in order.
template <class Kind, class Spec, class Leaves>
inline constexpr std::array<Spec, 0> specs_of{};
template <class Kind, class Spec, class... Leaf>
inline constexpr auto specs_of<Kind, Spec, std::tuple<Leaf...>> = [] {
  std::array<Spec, Layout<Kind, std::tuple<Leaf...>>::first[sizeof...(Leaf)]> all{};
  [[maybe_unused]] std::size_t next = 0;
  [[maybe_unused]] const auto add = [&](const auto& specs) {
    for (const auto& spec : specs) all[next++] = spec;
  };
  (add(Kind::template specs<Leaf>()), ...);
  return all;
}();

}  // namespace dist::nn::detail
