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

/// The maximum of each square window, per channel, on rows [height, width, channels]. With padding Valid, rows and
/// columns that no whole window reaches are dropped. With Same or Pad, windows reach over the border; what lies outside
/// of the image is no maximum.
template <std::size_t Window, std::size_t Stride = Window, class Padding = Valid>
struct MaxPool2D {
  static_assert(Window > 0, "nn::MaxPool2D needs a window of at least one element");
  static_assert(Stride > 0, "nn::MaxPool2D needs a stride of at least one element");

  template <class In>
  struct On {
    static_assert(In::rank == 3,
                  "nn::MaxPool2D takes rows [height, width, channels], and its input has another number of "
                  "axes: give such "
                  "an nn::Input, or put nn::Reshape before it");
    // After a failed assertion the layer goes on with an image that suits it, so that there is one error
    // only.
    using Image = std::conditional_t<In::rank == 3, In, StaticShape<Window, Window, 1>>;
    using Geometry = PoolGeometry<Image, Window, Stride, Padding>;
    static_assert(Geometry::output_height > 0 && Geometry::output_width > 0,
                  "nn::MaxPool2D's window is larger than its input image: use a smaller window, or padding nn::Same");
    static_assert(Geometry::output_height == 0 || Geometry::output_width == 0 || Geometry::windows_reach_image,
                  "nn::MaxPool2D has a window that lies outside the image: use less padding");
    using Layer = MaxPool2D;
    using Output = StaticShape<Geometry::output_height, Geometry::output_width, Geometry::channels>;
    static constexpr std::string_view name = "max_pooling2d";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = false;

    template <class Backend, class T>
    using Operation = detail::PoolOperation<Backend, typename Backend::template MaxPool2D<Geometry, T>, T>;
  };
};

}  // namespace dist::nn
