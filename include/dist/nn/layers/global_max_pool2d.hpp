#pragma once

#include <string_view>
#include <type_traits>

#include <dist/core/static_shape.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/pool_operation.hpp>

namespace dist::nn {

/// The maximum of each channel of an image: rows [height, width, channels] become [channels]. Of equal maxima the first
/// in row-major order gets the gradient.
struct GlobalMaxPool2D {
  template <class In>
  struct On {
    static_assert(In::rank == 3,
                  "nn::GlobalMaxPool2D takes rows [height, width, channels], and its input has another number of "
                  "axes: give such an nn::Input, or put nn::Reshape before it");
    // After a failed assertion the layer goes on with an image, so that there is one error only.
    using Geometry = ImageGeometry<std::conditional_t<In::rank == 3, In, StaticShape<1, 1, 1>>>;
    using Layer = GlobalMaxPool2D;
    using Output = StaticShape<Geometry::channels>;
    static constexpr std::string_view name = "global_max_pooling2d";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = false;

    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template GlobalMaxPool2D<Geometry, T>;
    };
    template <class Backend, class T>
    struct Operation : detail::PoolOperation<Backend, detail::KernelFrom<Backend, Asked<T>>, T> {
      static_assert(detail::computes<Backend, Asked<T>>,
                    "the back end of this network does not compute nn::GlobalMaxPool2D: use another back end, such "
                    "as nn::Reference or nn::OneDnn, or another layer");
    };
  };
};

}  // namespace dist::nn
