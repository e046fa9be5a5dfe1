#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/tensor.hpp>

namespace dist::nn::reference {

/// The largest element of each channel. Keeps nothing: the gradient looks for the maxima again. Bound by memory, so other
/// CPU back ends use it too.
template <class Image, class T>
class GlobalMaxPool2D {
  static constexpr std::size_t channels = Image::channels;

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    for_each_maximum(x, [&](std::size_t to, std::size_t from) { y.data()[to] = x.data()[from]; });
  }

  template <class State>
  void input_gradient(State&, TensorView<const T> x, TensorView<const T> dy, TensorView<T> dx) {
    std::fill_n(dx.data(), dx.size(), T{0});
    for_each_maximum(x, [&](std::size_t to, std::size_t from) { dx.data()[from] = dy.data()[to]; });
  }

 private:
  /// Calls `visit(output, input)` with the index of each output and of the first maximum of its channel.
  template <class Visit>
  static void for_each_maximum(TensorView<const T> x, Visit&& visit) {
    for (std::size_t image = 0; image < x.rows(); ++image)
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const std::size_t first = image * Image::pixels * channels + channel;
        std::size_t best = first;
        for (std::size_t pixel = 1; pixel < Image::pixels; ++pixel)
          if (x.data()[first + pixel * channels] > x.data()[best]) best = first + pixel * channels;
        visit(image * channels + channel, best);
      }
  }
};

}  // namespace dist::nn::reference
