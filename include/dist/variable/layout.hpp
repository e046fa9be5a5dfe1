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

/// One of the tensors that a variable holds, such as a parameter of a network, and where it lies in the variable.
struct VariableTensor {
  std::string_view layer;  ///< the layer's name, "dense"
  std::size_t ordinal;     ///< layers of that name before it
  std::string_view kind;   ///< "kernel", "bias", "query/kernel", "moving_mean"
  Shape shape;
  std::size_t offset;    ///< elements before it, padding included
  char separator = '/';  ///< between the layer and the kind

  /// Keras' path of the variable, "dense_1/kernel"; what belongs to no layer is named by its kind alone.
  [[nodiscard]] std::string name() const {
    const std::string_view between{&separator, 1};
    if (layer.empty()) return std::string{kind};
    return ordinal == 0 ? concat(layer, between, kind) : concat(layer, "_", ordinal, between, kind);
  }
};

/// The tensors of a variable, in the order of their offsets. A ParameterServer places each of them on its servers, and divides it
/// there, as if it were a variable of its own (spec J04 to J06).
using VariableLayout = std::span<const VariableTensor>;

namespace detail {

/// A strategy that keeps the tensors of a variable apart.
template <class S, class T, class Sync, class Agg, class Initial>
concept TakesLayouts = requires(S& strategy, Initial& initial, VariableLayout layout) {
  strategy.template variable<T, Sync, Agg>(Shape{}, initial, std::string{}, Trainable::yes, layout);
};

/// A variable of these tensors, by `strategy.variable`.
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
