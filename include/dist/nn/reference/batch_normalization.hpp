#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn::reference {

/// The passes over a batch that normalisation of its channels, the last axis, needs. Bound by memory, so other CPU back
/// ends use them too.
///
/// Sums are in double whatever the elements are: over many images a sum in float would lose digits, and the difference
/// of two squares even more. The elements are computed in the type that they are combined in, float for 16-bit ones.
template <std::size_t Channels, class T>
class BatchNormalization {
 public:
  using Compute = Accumulator<T>;
  /// Two sums of each channel, all first ones first.
  using Sums = std::span<double, 2 * Channels>;
  /// One number per channel.
  using Coefficients = std::span<const Compute, Channels>;

  /// Of the elements, and of their squares.
  template <class State>
  void sums(State&, TensorView<const T> x, Sums sums) {
    std::ranges::fill(sums, 0);
    double* const sum = sums.data();
    double* const sum_of_squares = sum + Channels;
    const std::size_t pixels = x.size() / Channels;
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const T* const from = x.data() + pixel * Channels;
      DIST_INDEPENDENT_LOOP
      for (std::size_t c = 0; c < Channels; ++c) {
        const auto value = static_cast<double>(from[c]);
        sum[c] += value;
        sum_of_squares[c] += value * value;
      }
    }
  }

  /// y = (x - mean) * scale + shift.
  template <class State>
  void forward(State&, TensorView<const T> x, Coefficients mean, Coefficients scale, Coefficients shift,
               TensorView<T> y) {
    const std::size_t pixels = x.size() / Channels;
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const T* const from = x.data() + pixel * Channels;
      T* const to = y.data() + pixel * Channels;
      DIST_INDEPENDENT_LOOP
      for (std::size_t c = 0; c < Channels; ++c)
        to[c] = static_cast<T>((static_cast<Compute>(from[c]) - mean[c]) * scale[c] + shift[c]);
    }
  }

  /// Of dy, and of dy * (x - mean).
  template <class State>
  void gradient_sums(State&, TensorView<const T> x, TensorView<const T> dy, Coefficients mean, Sums sums) {
    std::ranges::fill(sums, 0);
    double* const sum_dy = sums.data();
    double* const sum_dy_x = sum_dy + Channels;
    const std::size_t pixels = x.size() / Channels;
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const T* const from = x.data() + pixel * Channels;
      const T* const gradient = dy.data() + pixel * Channels;
      DIST_INDEPENDENT_LOOP
      for (std::size_t c = 0; c < Channels; ++c) {
        sum_dy[c] += static_cast<double>(gradient[c]);
        sum_dy_x[c] += static_cast<double>(gradient[c]) * (static_cast<double>(from[c]) - static_cast<double>(mean[c]));
      }
    }
  }

  /// dx = dy * of_dy + (x - mean) * of_x + constant.
  template <class State>
  void input_gradient(State&, TensorView<const T> x, TensorView<const T> dy, Coefficients mean, Coefficients of_dy,
                      Coefficients of_x, Coefficients constant, TensorView<T> dx) {
    const std::size_t pixels = x.size() / Channels;
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const T* const from = x.data() + pixel * Channels;
      const T* const gradient = dy.data() + pixel * Channels;
      T* const to = dx.data() + pixel * Channels;
      DIST_INDEPENDENT_LOOP
      for (std::size_t c = 0; c < Channels; ++c)
        to[c] = static_cast<T>(static_cast<Compute>(gradient[c]) * of_dy[c] +
                               (static_cast<Compute>(from[c]) - mean[c]) * of_x[c] + constant[c]);
    }
  }
};

}  // namespace dist::nn::reference
