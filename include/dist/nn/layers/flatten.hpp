#pragma once

#include <string_view>

#include <dist/core/static_shape.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// All elements of a row along one axis.
struct Flatten {
  template <class In>
  struct On {
    using Layer = Flatten;
    using Output = StaticShape<In::elements>;
    static constexpr std::string_view name = "flatten";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = true;
  };
};

}  // namespace dist::nn
