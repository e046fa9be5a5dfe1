#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/static_shape.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/pool_operation.hpp>

namespace dist::nn {

/// The mean of each square window, per channel, on rows [height, width, channels]. With padding Valid, rows and columns
/// that no whole window reaches are dropped. With Same or Pad, windows reach over the border; the mean is that of the
/// elements inside the image, as in TensorFlow.
template <std::size_t Window, std::size_t Stride = Window, class Padding = Valid>
struct AveragePool2D {
  static_assert(Window > 0, "nn::AveragePool2D needs a window of at least one element");
  static_assert(Stride > 0, "nn::AveragePool2D needs a stride of at least one element");

  template <class In>
  struct On {
    static_assert(In::rank == 3,
                  "nn::AveragePool2D takes rows [height, width, channels], and its input has another number of "
                  "axes: give such "
                  "an nn::Input, or put nn::Reshape before it");
    // After a failed assertion the layer goes on with an image that suits it, so that there is one error
    // only.
    using Image = std::conditional_t<In::rank == 3, In, StaticShape<Window, Window, 1>>;
    using Geometry = PoolGeometry<Image, Window, Stride, Padding>;
    static_assert(
        Geometry::output_height > 0 && Geometry::output_width > 0,
        "nn::AveragePool2D's window is larger than its input image: use a smaller window, or padding nn::Same");
    static_assert(Geometry::output_height == 0 || Geometry::output_width == 0 || Geometry::windows_reach_image,
                  "nn::AveragePool2D has a window that lies outside the image: use less padding");
    using Layer = AveragePool2D;
    using Output = StaticShape<Geometry::output_height, Geometry::output_width, Geometry::channels>;
    static constexpr std::string_view name = "average_pooling2d";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = false;

    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template AveragePool2D<Geometry, T>;
    };
    template <class Backend, class T>
    struct Operation : detail::PoolOperation<Backend, detail::KernelFrom<Backend, Asked<T>>, T> {
      static_assert(detail::computes<Backend, Asked<T>>,
                    "the back end of this network does not compute nn::AveragePool2D: use another back end, such as "
                    "nn::Reference or nn::OneDnn, or another layer");
    };
  };
};

}  // namespace dist::nn
