#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>

namespace dist::nn {

/// One tensor that a network learns, or keeps, and where it lies among all of its kind.
struct Parameter {
  std::string_view layer;  ///< the layer's name, "dense"
  std::size_t ordinal;     ///< layers of that name before it
  std::string_view kind;   ///< "kernel", "bias", "moving_mean"
  Shape shape;
  std::size_t offset;  ///< elements before it, padding included

  /// Keras' path of the variable: "dense_1/kernel".
  [[nodiscard]] std::string name() const {
    return ordinal == 0 ? text(layer, "/", kind) : text(layer, "_", ordinal, "/", kind);
  }
};

/// Every parameter starts at a multiple of so many elements: a cache line of float.
inline constexpr std::size_t parameter_alignment = 16;

/// `elements`, and those up to where the next parameter may start.
[[nodiscard]] constexpr std::size_t padded(std::size_t elements) {
  return (elements + parameter_alignment - 1) / parameter_alignment * parameter_alignment;
}

namespace detail {

/// Throws InvalidArgument when no parameter of `layout` has that name.
[[nodiscard]] inline const Parameter& parameter_named(std::span<const Parameter> layout, std::string_view name) {
  std::string names;
  for (const Parameter& parameter : layout) {
    if (parameter.name() == name) return parameter;
    names += text(names.empty() ? "" : ", ", parameter.name());
  }
  throw InvalidArgument(text("The network has no parameter '", name, "'"), text("it has ", names),
                        "Use one of these names");
}

/// The tensor of `parameter` in a variable that holds those of all parameters.
template <class Variable>
[[nodiscard]] auto part_of(const Variable& variable, const auto& scope, const Parameter& parameter) {
  using T = typename Variable::Element;
  const auto& all = variable.read(scope);
  return Tensor<T>{TensorView<const T>{all.data() + parameter.offset, parameter.shape}};
}

/// A parameter as something to be written.
template <class T>
struct NamedPart {
  using Element = T;
  std::string text;
  Shape extents;

  [[nodiscard]] const std::string& name() const noexcept { return text; }
  [[nodiscard]] const Shape& shape() const noexcept { return extents; }
};

}  // namespace detail

}  // namespace dist::nn
