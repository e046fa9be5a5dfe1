#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/variable/policies.hpp>

namespace dist {

/// A tensor in a variable, such as a parameter of a network, and its position.
struct VariableTensor {
  std::string_view layer;  ///< the layer's name, "dense"
  std::size_t ordinal;     ///< earlier layers with that name
  std::string_view kind;   ///< "kernel", "bias", "query/kernel", "moving_mean"
  Shape shape;             ///< its extents, without padding
  std::size_t offset;      ///< elements before it, including padding
  char separator = '/';    ///< between the layer and the kind

  /// Returns the Keras path of the tensor, "dense_1/kernel"; only the kind for tensors without a layer.
  [[nodiscard]] std::string name() const {
    const std::string_view between{&separator, 1};
    if (layer.empty()) return std::string{kind};
    return ordinal == 0 ? concat(layer, between, kind) : concat(layer, "_", ordinal, between, kind);
  }
};

/// The tensors of a variable, ordered by offset. A ParameterServer places and shards each tensor separately (spec J04
/// to J06).
using VariableLayout = std::span<const VariableTensor>;

namespace detail {

/// A strategy that places the tensors of a variable separately.
template <class S, class T, class Sync, class Agg, class Initial>
concept TakesLayouts = requires(S& strategy, Initial& initial, VariableLayout layout) {
  strategy.template variable<T, Sync, Agg>(Shape{}, initial, std::string{}, Trainable::yes, layout);
};

/// Makes a variable of these tensors by `strategy.variable`.
template <class T, class Sync, class Agg, class S, class Initial>
[[nodiscard]] auto variable_of_tensors(S& strategy, const Shape& shape, Initial&& initial, std::string name,
                                       [[maybe_unused]] VariableLayout layout) {
  if constexpr (TakesLayouts<S, T, Sync, Agg, Initial>)
    return strategy.template variable<T, Sync, Agg>(shape, initial, std::move(name), Trainable::by_synchronization,
                                                    layout);
  else
    return strategy.template variable<T, Sync, Agg>(shape, initial, std::move(name));
}

}  // namespace detail

}  // namespace dist
