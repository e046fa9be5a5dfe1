#pragma once

#include <cstddef>
#include <string_view>

#include <dist/core/never.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// The shape of one row of a network's input: what every Sequential starts with.
template <std::size_t... Extents>
struct Input {
  using Output = StaticShape<Extents...>;
  static_assert(((Extents > 0) && ...), "nn::Input has an extent of 0: give the shape of one row, without the batch");

  template <class In>
  struct On {
    static_assert(dist::detail::never<In>,
                  "nn::Input stands inside a nn::Sequential: it may only come first, because later shapes "
                  "follow from it");
    using Output = In;
    static constexpr std::string_view name = "input";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = true;
  };
};

}  // namespace dist::nn
