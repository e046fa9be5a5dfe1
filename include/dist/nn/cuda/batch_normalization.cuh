#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cuda/column_sums.cuh>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/state.cuh>

namespace dist::nn::cuda {

/// Of the elements of a channel, and of their squares.
template <class T>
struct SumOfSquares {
  using Sum = double;
  static constexpr std::size_t count = 2;
  const T* x;
  DIST_HD void operator()(std::size_t element, std::size_t, Sum (&sums)[count]) const {
    const auto value = static_cast<Sum>(x[element]);
    sums[0] += value;
    sums[1] += value * value;
  }
};
/// Of dy, and of dy * (x - mean).
template <class T>
struct SumOfGradients {
  using Sum = double;
  static constexpr std::size_t count = 2;
  const T* x;
  const T* dy;
  const T* mean;
  DIST_HD void operator()(std::size_t element, std::size_t channel, Sum (&sums)[count]) const {
    const auto slope = static_cast<Sum>(dy[element]);
    sums[0] += slope;
    sums[1] += slope * (static_cast<Sum>(x[element]) - static_cast<Sum>(mean[channel]));
  }
};

template <std::size_t Channels, class T>
struct Normalize {
  const T* x;
  const T* mean;
  const T* scale;
  const T* shift;
  T* y;
  DIST_HD void operator()(std::size_t i) const {
    const std::size_t c = i % Channels;
    y[i] = (x[i] - mean[c]) * scale[c] + shift[c];
  }
};
template <std::size_t Channels, class T>
struct GradientOfNormalized {
  const T* x;
  const T* dy;
  const T* mean;
  const T* of_dy;
  const T* of_x;
  const T* constant;
  T* dx;
  DIST_HD void operator()(std::size_t i) const {
    const std::size_t c = i % Channels;
    dx[i] = dy[i] * of_dy[c] + (x[i] - mean[c]) * of_x[c] + constant[c];
  }
};

/// The passes over a batch that normalisation of its channels, the last axis, needs. Sums are in double, whose few
/// additions cost less than the memory that is read.
template <std::size_t Channels, class T>
class BatchNormalization {
 public:
  using Compute = T;
  using Sums = dist::cuda::Queue::Span<double>;
  using Coefficients = dist::cuda::Queue::Span<const T>;

  void sums(State& state, View<const T> x, Sums sums) {
    sum_columns(state, x.size() / Channels, Channels, SumOfSquares<T>{x.data()}, sums.data());
  }

  void forward(State& state, View<const T> x, Coefficients mean, Coefficients scale, Coefficients shift, View<T> y) {
    state.queue().for_each({0, x.size()},
                           Normalize<Channels, T>{x.data(), mean.data(), scale.data(), shift.data(), y.data()});
  }

  void gradient_sums(State& state, View<const T> x, View<const T> dy, Coefficients mean, Sums sums) {
    sum_columns(state, x.size() / Channels, Channels, SumOfGradients<T>{x.data(), dy.data(), mean.data()}, sums.data());
  }

  void input_gradient(State& state, View<const T> x, View<const T> dy, Coefficients mean, Coefficients of_dy,
                      Coefficients of_x, Coefficients constant, View<T> dx) {
    state.queue().for_each(
        {0, x.size()}, GradientOfNormalized<Channels, T>{x.data(), dy.data(), mean.data(), of_dy.data(), of_x.data(),
                                                         constant.data(), dx.data()});
  }
};

}  // namespace dist::nn::cuda
