#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cudnn/elementwise.cuh>
#include <dist/nn/cudnn/state.cuh>

namespace dist::nn::cudnn {

/// Where windows lie in a batch of images.
template <class Geometry, class T>
struct PoolWindows {
  using G = Geometry;
  const T* x;

  /// The element that is the maximum of a window, the first of equal ones.
  [[nodiscard]] DIST_HD std::size_t first_maximum(std::size_t image, std::size_t row, std::size_t column,
                                                  std::size_t channel) const {
    const std::size_t corner =
        ((image * G::height + row * G::stride) * G::width + column * G::stride) * G::channels + channel;
    std::size_t best = corner;
    for (std::size_t down = 0; down < G::window; ++down)
      for (std::size_t right = 0; right < G::window; ++right) {
        const std::size_t candidate = corner + (down * G::width + right) * G::channels;
        if (x[candidate] > x[best]) best = candidate;
      }
    return best;
  }
};

template <class Geometry, class T>
struct TakeMaximum {
  using G = Geometry;
  PoolWindows<Geometry, T> windows;
  T* y;
  DIST_HD void operator()(std::size_t i) const {
    const std::size_t channel = i % G::channels, pixel = i / G::channels;
    const std::size_t column = pixel % G::output_width, row = pixel / G::output_width;
    y[i] = windows.x[windows.first_maximum(row / G::output_height, row % G::output_height, column, channel)];
  }
};

/// What an element gets from the windows in which it is the maximum, in their order.
template <class Geometry, class T>
struct GradientOfMaximum {
  using G = Geometry;
  PoolWindows<Geometry, T> windows;
  const T* dy;
  T* dx;

  DIST_HD void operator()(std::size_t i) const {
    const std::size_t channel = i % G::channels, pixel = i / G::channels;
    const std::size_t column = pixel % G::width, row = pixel / G::width % G::height;
    const std::size_t image = pixel / (G::width * G::height);
    const std::size_t row_end = end_of(row, G::output_height), column_end = end_of(column, G::output_width);
    T sum{0};
    for (std::size_t down = first_of(row); down < row_end; ++down)
      for (std::size_t right = first_of(column); right < column_end; ++right)
        if (windows.first_maximum(image, down, right, channel) == i)
          sum += dy[((image * G::output_height + down) * G::output_width + right) * G::channels + channel];
    dx[i] = sum;
  }

 private:
  /// The windows along an axis in which an element lies: from the first on, before the end.
  [[nodiscard]] static DIST_HD std::size_t first_of(std::size_t at) {
    return at < G::window ? 0 : (at - G::window) / G::stride + 1;
  }
  [[nodiscard]] static DIST_HD std::size_t end_of(std::size_t at, std::size_t outputs) {
    return at / G::stride + 1 < outputs ? at / G::stride + 1 : outputs;
  }
};

/// The largest element of each window, per channel. Keeps nothing: the gradient looks for the maxima again.
template <class Geometry, class T>
class MaxPool2D {
  static_assert(Geometry::pad_top == 0 && Geometry::pad_left == 0 && Geometry::pad_bottom == 0 &&
                    Geometry::pad_right == 0,
                "nn::CuDnn computes no nn::MaxPool2D with padding: use nn::Valid, or a back end on the host");

 public:
  void forward(State& state, View<const T> x, View<T> y) {
    state.queue().for_each({0, y.size()}, TakeMaximum<Geometry, T>{{x.data()}, y.data()});
  }

  void input_gradient(State& state, View<const T> x, View<const T> dy, View<T> dx) {
    state.queue().for_each({0, dx.size()}, GradientOfMaximum<Geometry, T>{{x.data()}, dy.data(), dx.data()});
  }
};

}  // namespace dist::nn::cudnn
