#pragma once

#include <cstddef>
#include <string_view>

#include <dist/core/static_shape.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// The elements of a row under other extents, in the same row-major order.
template <std::size_t... Extents>
struct Reshape {
  template <class In>
  struct On {
    using Layer = Reshape;
    using Output = StaticShape<Extents...>;
    static_assert(Output::elements == In::elements,
                  "nn::Reshape must keep the number of elements: the product of its extents is not that of "
                  "its input's");
    static constexpr std::string_view name = "reshape";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = true;
  };
};

}  // namespace dist::nn
