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
#include <dist/nn/layers/conv2d.hpp>

namespace dist::nn {

/// A separate convolution of each channel by `Multiplier` square kernels: nn::Conv2D with one group per channel;
/// kernel [window, window, channels, multiplier]. Output c * multiplier + m belongs to channel c and its kernel m, as
/// in Keras. With nn::NoBias as bias initialiser it has no bias.
template <std::size_t Window, class Function = Linear, std::size_t Stride = 1, class Padding = Valid,
          std::size_t Multiplier = 1, class KernelInitializer = GlorotUniform, class BiasInitializer = Zeros>
struct DepthwiseConv2D {
 private:
  /// Prevents further errors after a failed assertion.
  template <class In>
  static constexpr std::size_t image_channels = In::rank == 3 ? In::last_extent : 1;

 public:
  static_assert(Multiplier > 0, "nn::DepthwiseConv2D needs a multiplier of at least one");

  /// The bound layer.
  template <class In>
  struct On : Conv2D<Multiplier * image_channels<In>, Window, Function, Stride, Padding, KernelInitializer,
                     BiasInitializer, image_channels<In>>::template On<In> {
    using Layer = DepthwiseConv2D;
    /// The number of channels of the input.
    static constexpr std::size_t channels = image_channels<In>;
    static constexpr std::string_view name = "depthwise_conv2d";
    static constexpr auto parameters = detail::kernel_and_bias<typename On::Geometry>(
        Shape{Window, Window, channels, Multiplier}, Multiplier* channels);

    /// Keras' fans, which include channels and multiplier.
    template <std::size_t Which, class T>
    static void initialize(TensorView<T> view, RandomStream stream) {
      using Initializer = std::conditional_t<Which == 0, KernelInitializer, BiasInitializer>;
      Initializer::fill(view, Fans{Window * Window * channels, Window * Window * Multiplier}, stream);
    }
  };
};

}  // namespace dist::nn
