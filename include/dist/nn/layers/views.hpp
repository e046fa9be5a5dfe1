#pragma once

#include <cstddef>
#include <string_view>

#include <dist/core/static_shape.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// Flattens a row to one axis.
struct Flatten {
  /// The bound layer.
  template <class In>
  struct On {
    using Layer = Flatten;
    using Output = StaticShape<In::elements>;
    static constexpr std::string_view name = "flatten";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = true;
  };
};

/// Changes the shape of a row, in row-major order.
template <std::size_t... Extents>
struct Reshape {
  /// The bound layer.
  template <class In>
  struct On {
    using Layer = Reshape;
    using Output = StaticShape<Extents...>;
    static_assert(Output::elements == In::elements,
                  "nn::Reshape must keep the number of elements: the product of its extents differs from the number of "
                  "elements of its input");
    static constexpr std::string_view name = "reshape";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = true;
  };
};

/// The shape of a network's input row, without the batch; the first element of each Sequential.
template <std::size_t... Extents>
struct Input {
  using Output = StaticShape<Extents...>;
  static_assert(((Extents > 0) && ...), "nn::Input has an extent of 0: give the shape of one row, without the batch");

  /// Fails to compile: an Input must be the first element of a Sequential.
  template <class In>
  struct On {
    static_assert(dist::detail::always_false<In>,
                  "nn::Input must be first in an nn::Sequential, because later shapes follow from it");
    using Output = In;
    static constexpr std::string_view name = "input";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = true;
  };
};

}  // namespace dist::nn
