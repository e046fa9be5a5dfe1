#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/tensor.hpp>

namespace dist::nn::reference {

/// The largest element of each window, per channel. Keeps nothing: the gradient looks for the maxima again.
template <class Geometry, class T>
class MaxPool2D {
  using G = Geometry;
  static constexpr std::size_t input_size = G::height * G::width * G::channels;
  static constexpr std::size_t output_size = G::output_height * G::output_width * G::channels;

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    for_each_maximum(x, [&](std::size_t to, std::size_t from) { y.data()[to] = x.data()[from]; });
  }

  template <class State>
  void input_gradient(State&, TensorView<const T> x, TensorView<const T> dy, TensorView<T> dx) {
    std::fill_n(dx.data(), dx.size(), T{0});
    for_each_maximum(x, [&](std::size_t to, std::size_t from) { dx.data()[from] += dy.data()[to]; });
  }

 private:
  /// Calls `visit(output, input)` with the index of each output and of the first maximum of its window.
  template <class Visit>
  static void for_each_maximum(TensorView<const T> x, Visit&& visit) {
    for (std::size_t image = 0; image < x.rows(); ++image)
      for (std::size_t row = 0; row < G::output_height; ++row)
        for (std::size_t column = 0; column < G::output_width; ++column)
          for (std::size_t channel = 0; channel < G::channels; ++channel) {
            const std::size_t corner =
                image * input_size + (row * G::stride * G::width + column * G::stride) * G::channels + channel;
            std::size_t best = corner;
            for (std::size_t down = 0; down < G::window; ++down)
              for (std::size_t right = 0; right < G::window; ++right) {
                const std::size_t candidate = corner + (down * G::width + right) * G::channels;
                if (x.data()[candidate] > x.data()[best]) best = candidate;
              }
            visit(image * output_size + (row * G::output_width + column) * G::channels + channel, best);
          }
  }
};

}  // namespace dist::nn::reference
