#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/tensor.hpp>
#include <dist/nn/reference/vectors.hpp>
#include <dist/nn/reference/windows.hpp>

namespace dist::nn::reference {

/// y = activation(x correlated with kernel + bias). The innermost loops run over the filters of a group, where memory
/// is contiguous.
template <class Geometry, class T>
class Conv2D {
  static constexpr std::size_t channels = Geometry::channels;
  static constexpr std::size_t filters = Geometry::filters;
  static constexpr std::size_t input_size = Geometry::height * Geometry::width * channels;
  static constexpr std::size_t output_pixels = Geometry::output_height * Geometry::output_width;
  static constexpr std::size_t output_size = output_pixels * filters;
  static constexpr std::size_t group_channels = Geometry::group_channels;
  static constexpr std::size_t group_filters = Geometry::group_filters;

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<const T> kernel, TensorView<const T> bias, TensorView<T> y) {
    for (std::size_t image = 0; image < x.rows(); ++image) {
      const T* const in = x.data() + image * input_size;
      T* const out = y.data() + image * output_size;
      for (std::size_t pixel = 0; pixel < output_pixels; ++pixel)
        std::copy_n(bias.data(), filters, out + pixel * filters);
      for_each_tap<Geometry>([&](std::size_t to, std::size_t from, std::size_t tap) {
        for (std::size_t channel = 0; channel < channels; ++channel)
          add_scaled(in[from * channels + channel], kernel.data() + weights_of(tap, channel),
                     out + to * filters + first_filter(channel), group_filters);
      });
      for (std::size_t i = 0; i < output_size; ++i) out[i] = Geometry::Activation::apply(out[i]);
    }
  }

  template <class State>
  void parameter_gradients(State&, TensorView<const T> x, TensorView<const T> dy, TensorView<T> kernel_gradient,
                           TensorView<T> bias_gradient) {
    std::fill_n(kernel_gradient.data(), kernel_gradient.size(), T{0});
    std::fill_n(bias_gradient.data(), filters, T{0});
    for (std::size_t image = 0; image < x.rows(); ++image) {
      const T* const in = x.data() + image * input_size;
      const T* const out = dy.data() + image * output_size;
      for_each_tap<Geometry>([&](std::size_t to, std::size_t from, std::size_t tap) {
        for (std::size_t channel = 0; channel < channels; ++channel)
          add_scaled(in[from * channels + channel], out + to * filters + first_filter(channel),
                     kernel_gradient.data() + weights_of(tap, channel), group_filters);
      });
      for (std::size_t pixel = 0; pixel < output_pixels; ++pixel)
        add(out + pixel * filters, bias_gradient.data(), filters);
    }
  }

  template <class State>
  void input_gradient(State&, TensorView<const T> dy, TensorView<const T> kernel, TensorView<T> dx) {
    std::fill_n(dx.data(), dx.size(), T{0});
    for (std::size_t image = 0; image < dy.rows(); ++image) {
      const T* const out = dy.data() + image * output_size;
      T* const in = dx.data() + image * input_size;
      for_each_tap<Geometry>([&](std::size_t to, std::size_t from, std::size_t tap) {
        for (std::size_t channel = 0; channel < channels; ++channel)
          in[from * channels + channel] +=
              dot(out + to * filters + first_filter(channel), kernel.data() + weights_of(tap, channel), group_filters);
      });
    }
  }

 private:
  /// The first of the filters that see a channel, and where the weights of these for a tap start in the kernel.
  [[nodiscard]] static constexpr std::size_t first_filter(std::size_t channel) {
    return channel / group_channels * group_filters;
  }
  [[nodiscard]] static constexpr std::size_t weights_of(std::size_t tap, std::size_t channel) {
    return (tap * group_channels + channel % group_channels) * filters + first_filter(channel);
  }
};

}  // namespace dist::nn::reference
