#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <dist/core/shape.hpp>
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

}  // namespace dist::nn
