#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/reference/windows.hpp>

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
      for_each_window<G>([&](std::size_t output, IndexRange rows, IndexRange columns) {
        for (std::size_t channel = 0; channel < G::channels; ++channel) {
          const auto input = [&](std::size_t row, std::size_t column) {
            return image * input_size + (row * G::width + column) * G::channels + channel;
          };
          std::size_t best = input(rows.begin, columns.begin);
          for (std::size_t row = rows.begin; row < rows.end; ++row)
            for (std::size_t column = columns.begin; column < columns.end; ++column)
              if (x.data()[input(row, column)] > x.data()[best]) best = input(row, column);
          visit(image * output_size + output * G::channels + channel, best);
        }
      });
  }
};

}  // namespace dist::nn::reference
