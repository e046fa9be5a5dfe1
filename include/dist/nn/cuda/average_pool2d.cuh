#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/state.cuh>
#include <dist/nn/reference/windows.hpp>

namespace dist::nn::cuda {

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
    y[i] = sum / static_cast<T>((rows.end - rows.begin) * (columns.end - columns.begin));
  }
};

/// What an element gets from the windows that cover it, in their order.
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
               static_cast<T>((down.end - down.begin) * (right.end - right.begin));
      }
    dx[i] = sum;
  }
};

/// The mean of the elements of each window that lie in the image, per channel.
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
