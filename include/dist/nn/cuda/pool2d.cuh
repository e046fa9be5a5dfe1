#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/state.cuh>
#include <dist/nn/reference/windows.hpp>

namespace dist::nn::cuda {

/// Finds the maxima of windows in a batch of images.
template <class Geometry, class T>
struct PoolWindows {
  using G = Geometry;
  const T* x;

  /// The index of a window's first maximum inside the image, or of the first NaN.
  [[nodiscard]] DIST_HD std::size_t first_maximum(std::size_t image, std::size_t row, std::size_t column,
                                                  std::size_t channel) const {
    const IndexRange rows = reference::inside<G>(row, G::pad_top, G::height);
    const IndexRange columns = reference::inside<G>(column, G::pad_left, G::width);
    const std::size_t first_row = image * G::height;
    std::size_t best = ((first_row + rows.begin) * G::width + columns.begin) * G::channels + channel;
    for (std::size_t down = rows.begin; down < rows.end; ++down)
      for (std::size_t right = columns.begin; right < columns.end; ++right) {
        const std::size_t candidate = ((first_row + down) * G::width + right) * G::channels + channel;
        const bool is_first_nan = x[candidate] != x[candidate] && x[best] == x[best];
        if (x[candidate] > x[best] || is_first_nan) best = candidate;
      }
    return best;
  }
  /// The index of the first maximum for output `i` of the batch.
  [[nodiscard]] DIST_HD std::size_t first_maximum(std::size_t i) const {
    const std::size_t channel = i % G::channels, pixel = i / G::channels;
    const std::size_t column = pixel % G::output_width, row = pixel / G::output_width;
    return first_maximum(row / G::output_height, row % G::output_height, column, channel);
  }
};

/// Writes the maximum of a window.
template <class Geometry, class T>
struct TakeMaximum {
  PoolWindows<Geometry, T> windows;
  T* y;
  DIST_HD void operator()(std::size_t i) const { y[i] = windows.x[windows.first_maximum(i)]; }
};

/// Sums an element's gradient over the windows whose maximum it is, in order.
template <class Geometry, class T>
struct GradientOfMaximum {
  using G = Geometry;
  PoolWindows<Geometry, T> windows;
  const T* dy;
  T* dx;

  DIST_HD void operator()(std::size_t i) const {
    const std::size_t channel = i % G::channels, pixel = i / G::channels;
    const std::size_t image = pixel / (G::width * G::height);
    const IndexRange rows = reference::covering<G>(pixel / G::width % G::height, G::pad_top, G::output_height);
    const IndexRange columns = reference::covering<G>(pixel % G::width, G::pad_left, G::output_width);
    T sum{0};
    for (std::size_t down = rows.begin; down < rows.end; ++down)
      for (std::size_t right = columns.begin; right < columns.end; ++right)
        if (windows.first_maximum(image, down, right, channel) == i)
          sum += dy[((image * G::output_height + down) * G::output_width + right) * G::channels + channel];
    dx[i] = sum;
  }
};
/// Writes gradients of windows that do not overlap to dx, which must hold zeros.
template <class Geometry, class T>
struct ScatterToMaximum {
  PoolWindows<Geometry, T> windows;
  const T* dy;
  T* dx;
  DIST_HD void operator()(std::size_t i) const { dx[windows.first_maximum(i)] = dy[i]; }
};

/// The maximum of each window, per channel; NaN if the window has one. Stores no indices: the gradient finds the
/// maxima again, once per window if windows do not overlap.
template <class Geometry, class T>
class MaxPool2D {
 public:
  void forward(State& state, View<const T> x, View<T> y) {
    state.queue().for_each({0, y.size()}, TakeMaximum<Geometry, T>{{x.data()}, y.data()});
  }

  void input_gradient(State& state, View<const T> x, View<const T> dy, View<T> dx) {
    if constexpr (Geometry::stride >= Geometry::window) {
      state.queue().fill(dx.elements(), T{0});
      state.queue().for_each({0, dy.size()}, ScatterToMaximum<Geometry, T>{{x.data()}, dy.data(), dx.data()});
    } else {
      state.queue().for_each({0, dx.size()}, GradientOfMaximum<Geometry, T>{{x.data()}, dy.data(), dx.data()});
    }
  }
};

/// Writes the mean of a window.
template <class Geometry, class T>
struct TakeMean {
  using G = Geometry;
  const T* x;
  T* y;

  DIST_HD void operator()(std::size_t i) const {
    const std::size_t channel = i % G::channels, pixel = i / G::channels;
    const std::size_t first_row = pixel / (G::output_width * G::output_height) * G::height;
    const IndexRange rows = reference::inside<G>(pixel / G::output_width % G::output_height, G::pad_top, G::height);
    const IndexRange columns = reference::inside<G>(pixel % G::output_width, G::pad_left, G::width);
    T sum{0};
    for (std::size_t row = rows.begin; row < rows.end; ++row)
      for (std::size_t column = columns.begin; column < columns.end; ++column)
        sum += x[((first_row + row) * G::width + column) * G::channels + channel];
    y[i] = sum / static_cast<T>(G::counted(rows.end - rows.begin, columns.end - columns.begin));
  }
};

/// Sums an element's gradient over the windows that cover it, in order.
template <class Geometry, class T>
struct GradientOfMean {
  using G = Geometry;
  const T* dy;
  T* dx;

  DIST_HD void operator()(std::size_t i) const {
    const std::size_t channel = i % G::channels, pixel = i / G::channels;
    const std::size_t first_row = pixel / (G::width * G::height) * G::output_height;
    const IndexRange rows = reference::covering<G>(pixel / G::width % G::height, G::pad_top, G::output_height);
    const IndexRange columns = reference::covering<G>(pixel % G::width, G::pad_left, G::output_width);
    T sum{0};
    for (std::size_t row = rows.begin; row < rows.end; ++row)
      for (std::size_t column = columns.begin; column < columns.end; ++column) {
        const IndexRange down = reference::inside<G>(row, G::pad_top, G::height);
        const IndexRange right = reference::inside<G>(column, G::pad_left, G::width);
        sum += dy[((first_row + row) * G::output_width + column) * G::channels + channel] /
               static_cast<T>(G::counted(down.end - down.begin, right.end - right.begin));
      }
    dx[i] = sum;
  }
};

/// The mean of each window, per channel.
template <class Geometry, class T>
class AveragePool2D {
 public:
  void forward(State& state, View<const T> x, View<T> y) {
    state.queue().for_each({0, y.size()}, TakeMean<Geometry, T>{x.data(), y.data()});
  }

  void input_gradient(State& state, View<const T>, View<const T> dy, View<T> dx) {
    state.queue().for_each({0, dx.size()}, GradientOfMean<Geometry, T>{dy.data(), dx.data()});
  }
};

}  // namespace dist::nn::cuda
