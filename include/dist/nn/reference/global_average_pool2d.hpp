#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/tensor.hpp>
#include <dist/nn/reference/vectors.hpp>

namespace dist::nn::reference {

/// The mean of each channel. Bound by memory, so other CPU back ends use it too.
template <class Image, class T>
class GlobalAveragePool2D {
  static constexpr std::size_t channels = Image::channels;
  static constexpr T share = T{1} / static_cast<T>(Image::pixels);

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    std::fill_n(y.data(), y.size(), T{0});
    const T* from = x.data();
    for (std::size_t image = 0; image < x.rows(); ++image) {
      T* const mean = y.data() + image * channels;
      for (std::size_t pixel = 0; pixel < Image::pixels; ++pixel, from += channels) add(from, mean, channels);
      for (std::size_t c = 0; c < channels; ++c) mean[c] *= share;
    }
  }

  template <class State>
  void input_gradient(State&, TensorView<const T>, TensorView<const T> dy, TensorView<T> dx) {
    T* to = dx.data();
    for (std::size_t image = 0; image < dy.rows(); ++image) {
      const T* const gradient = dy.data() + image * channels;
      for (std::size_t pixel = 0; pixel < Image::pixels; ++pixel, to += channels)
        for (std::size_t c = 0; c < channels; ++c) to[c] = gradient[c] * share;
    }
  }
};

}  // namespace dist::nn::reference
