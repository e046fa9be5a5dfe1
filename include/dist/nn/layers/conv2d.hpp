#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/kernel_operation.hpp>

namespace dist::nn::detail {

/// nn::Conv1D or nn::Conv2D with this geometry; `Kernel` are the extents of the kernel before [channels, filters].
template <class GeometryType, class Function, class KernelInitializer, class BiasInitializer, std::size_t... Kernel>
struct BoundConvolution {
  using Geometry = GeometryType;
  using Activation = Function;
  static constexpr auto parameters =
      kernel_and_bias<Geometry>(Shape{Kernel..., Geometry::group_channels, Geometry::filters}, Geometry::filters);
  static constexpr bool is_view = false;

  template <std::size_t Which, class T>
  static void initialize(TensorView<T> view, RandomStream stream) {
    using Initializer = std::conditional_t<Which == 0, KernelInitializer, BiasInitializer>;
    constexpr std::size_t taps = (Kernel * ...);
    Initializer::fill(view, Fans{taps * Geometry::group_channels, taps * Geometry::filters}, stream);
  }

  template <class Backend, class T>
  using Operation = KernelOperation<Backend, typename Backend::template Conv2D<Geometry, T>, Geometry, Function, T>;
};

}  // namespace dist::nn::detail

namespace dist::nn {

/// A convolution by `Filters` square kernels, with bias and activation, on rows [height, width, channels]; kernel
/// [window, window, channels / groups, filters], not flipped, as in Keras. `Padding` is Valid, Same or Pad. With
/// nn::NoBias as bias initialiser it has no bias.
///
/// With `Groups`, each filter only reads the channels of its group. For one group per channel see DepthwiseConv2D.
template <std::size_t Filters, std::size_t Window, class Function = Linear, std::size_t Stride = 1,
          class Padding = Valid, class KernelInitializer = GlorotUniform, class BiasInitializer = Zeros,
          std::size_t Groups = 1>
struct Conv2D {
  static_assert(Filters > 0, "nn::Conv2D needs at least one filter");
  using Activation = typename detail::Applied<Function>::Type;
  static_assert(Window > 0, "nn::Conv2D needs a window of at least one element");
  static_assert(Stride > 0, "nn::Conv2D needs a stride of at least one element");
  static_assert(Groups > 0 && Filters % Groups == 0,
                "nn::Conv2D divides its filters into groups of equal size: give a number of filters that is a multiple "
                "of the number of groups");

  /// The StaticShape of an input row; another image after a failed assertion.
  template <class In>
  using Image = std::conditional_t<In::rank == 3, In, StaticShape<Window, Window, Groups>>;
  /// The sizes for rows of shape `In`.
  template <class In>
  using GeometryOn = Conv2DGeometry<Image<In>, Filters, Window, Stride, Padding, detail::ActivationOfKernel<Activation>,
                                    Groups, detail::has_bias<BiasInitializer>>;

  /// The bound layer.
  template <class In>
  struct On : detail::BoundConvolution<GeometryOn<In>, Activation, KernelInitializer, BiasInitializer, Window, Window> {
    using Geometry = GeometryOn<In>;
    static_assert(In::rank == 3,
                  "nn::Conv2D takes rows [height, width, channels], but its input has a different number of axes: "
                  "change nn::Input, or put nn::Reshape before it");
    static_assert(
        Geometry::channels % Groups == 0,
        "nn::Conv2D divides the channels of its input into groups of equal size: give a number of groups that "
        "divides the number of channels");
    static_assert(Geometry::output_height > 0 && Geometry::output_width > 0,
                  "nn::Conv2D's window is larger than its input image: use a smaller window, or padding nn::Same. The "
                  "arguments are nn::Conv2D<filters, window>");
    using Layer = Conv2D;
    using Output = typename Geometry::Output;
    static constexpr std::string_view name = "conv2d";
  };
};

}  // namespace dist::nn
