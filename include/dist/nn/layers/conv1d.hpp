#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/static_shape.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/kernel_operation.hpp>

namespace dist::nn {

/// A convolution by `Filters` kernels, with bias and activation, on rows [length, channels]; kernel [window, channels,
/// filters], not flipped, as in Keras. `Padding` is Valid, Same or Pad. With nn::NoBias as bias initialiser it has no
/// bias. Back ends compute it as nn::Conv2D on images [1, length, channels].
template <std::size_t Filters, std::size_t Window, class Function = Linear, std::size_t Stride = 1,
          class Padding = Valid, class KernelInitializer = GlorotUniform, class BiasInitializer = Zeros>
struct Conv1D {
  static_assert(Filters > 0, "nn::Conv1D needs at least one filter");
  static_assert(Window > 0, "nn::Conv1D needs a window of at least one element");
  static_assert(Stride > 0, "nn::Conv1D needs a stride of at least one element");
  using Activation = typename detail::Applied<Function>::Type;

  /// The image of an input row; another one after a failed assertion.
  template <class In>
  using Image = typename SequenceImage<std::conditional_t<In::rank == 2, In, StaticShape<Window, 1>>>::Type;
  /// The sizes for rows of shape `In`.
  template <class In>
  using GeometryOn = Conv2DGeometry<Image<In>, Filters, Window, Stride, Padding, detail::ActivationOfKernel<Activation>,
                                    1, detail::has_bias<BiasInitializer>, true>;

  /// The bound layer.
  template <class In>
  struct On : detail::BoundConvolution<GeometryOn<In>, Activation, KernelInitializer, BiasInitializer, Window> {
    static_assert(In::rank == 2,
                  "nn::Conv1D takes rows [length, channels], but its input has a different number of axes: change "
                  "nn::Input, or put nn::Reshape before it");
    static_assert(GeometryOn<In>::output_width > 0,
                  "nn::Conv1D's window is larger than its input: use a smaller window, or padding nn::Same. The "
                  "arguments are nn::Conv1D<filters, window>");
    using Layer = Conv1D;
    using Output = StaticShape<GeometryOn<In>::output_width, Filters>;
    static constexpr std::string_view name = "conv1d";
  };
};

}  // namespace dist::nn
