#pragma once

#include <string_view>
#include <type_traits>

#include <dist/core/static_shape.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/pool_operation.hpp>

namespace dist::nn {

/// The mean of each channel of an image: rows [height, width, channels] become [channels].
struct GlobalAveragePool2D {
  template <class In>
  struct On {
    static_assert(In::rank == 3,
                  "nn::GlobalAveragePool2D takes rows [height, width, channels], and its input has another number of "
                  "axes: give such an nn::Input, or put nn::Reshape before it");
    // After a failed assertion the layer goes on with an image, so that there is one error only.
    using Geometry = ImageGeometry<std::conditional_t<In::rank == 3, In, StaticShape<1, 1, 1>>>;
    using Layer = GlobalAveragePool2D;
    using Output = StaticShape<Geometry::channels>;
    static constexpr std::string_view name = "global_average_pooling2d";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = false;

    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template GlobalAveragePool2D<Geometry, T>;
    };
    template <class Backend, class T>
    struct Operation : detail::PoolOperation<Backend, detail::KernelFrom<Backend, Asked<T>>, T> {
      static_assert(detail::computes<Backend, Asked<T>>,
                    "the back end of this network does not compute nn::GlobalAveragePool2D: use another back end, such "
                    "as nn::Reference or nn::OneDnn, or another layer");
    };
  };
};

}  // namespace dist::nn
