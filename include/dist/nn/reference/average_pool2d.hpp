#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/reference/vectors.hpp>
#include <dist/nn/reference/windows.hpp>

namespace dist::nn::reference {

/// The mean of the elements of each window that lie in the image, per channel. Bound by memory, so other CPU back ends use
/// it too.
template <class Geometry, class T>
class AveragePool2D {
  using G = Geometry;
  static constexpr std::size_t input_size = G::height * G::width * G::channels;
  static constexpr std::size_t output_size = G::output_height * G::output_width * G::channels;

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    std::fill_n(y.data(), y.size(), T{0});
    for_each_share(x.rows(), [&](std::size_t to, std::size_t from, T share) {
      add_scaled(share, x.data() + from, y.data() + to, G::channels);
    });
  }

  template <class State>
  void input_gradient(State&, TensorView<const T>, TensorView<const T> dy, TensorView<T> dx) {
    std::fill_n(dx.data(), dx.size(), T{0});
    for_each_share(dy.rows(), [&](std::size_t to, std::size_t from, T share) {
      add_scaled(share, dy.data() + to, dx.data() + from, G::channels);
    });
  }

 private:
  /// Calls `visit(output, input, share)` with where the channels of two pixels start, and the share that the input has in
  /// the output.
  template <class Visit>
  static void for_each_share(std::size_t images, Visit&& visit) {
    for (std::size_t image = 0; image < images; ++image)
      for_each_window<G>([&](std::size_t output, IndexRange rows, IndexRange columns) {
        const T share = T{1} / static_cast<T>(rows.size() * columns.size());
        for (std::size_t row = rows.begin; row < rows.end; ++row)
          for (std::size_t column = columns.begin; column < columns.end; ++column)
            visit(image * output_size + output * G::channels,
                  image * input_size + (row * G::width + column) * G::channels, share);
      });
  }
};

}  // namespace dist::nn::reference
