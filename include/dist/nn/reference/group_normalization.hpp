#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn::reference {

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with the statistics of each group of channels over all pixels
/// of one image, and a gamma and a beta for each channel. Statistics are in double whatever the elements are, as a
/// difference of large numbers would lose digits. Bound by memory, so other CPU back ends use it too.
///
/// `Geometry` has `pixels`, `channels`, `groups`; with one pixel and one group this is layer normalisation.
template <class Geometry, class T>
class GroupNormalization {
  static constexpr std::size_t pixels = Geometry::pixels;
  static constexpr std::size_t channels = Geometry::channels;
  static constexpr std::size_t width = channels / Geometry::groups;
  static constexpr double share = 1.0 / static_cast<double>(pixels * width);

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<const T> gamma, TensorView<const T> beta, double epsilon,
               TensorView<T> y) {
    for_each_group(x, epsilon, [&](std::size_t first, std::size_t channel, double mean, double inverse_deviation) {
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
        const T* const from = x.data() + first + pixel * channels;
        T* const to = y.data() + first + pixel * channels;
        DIST_INDEPENDENT_LOOP
        for (std::size_t c = 0; c < width; ++c) {
          const double normalized = (static_cast<double>(from[c]) - mean) * inverse_deviation;
          to[c] = static_cast<T>(normalized * static_cast<double>(gamma.data()[channel + c]) +
                                 static_cast<double>(beta.data()[channel + c]));
        }
      }
    });
  }

  /// With n = dy * gamma over a group: dx = (n - mean(n) - normalised * mean(n * normalised)) / deviation. Overwrites the
  /// gradients of gamma and beta, and dx where it has elements.
  template <class State>
  void backward(State&, TensorView<const T> x, TensorView<const T> gamma, TensorView<const T> dy, double epsilon,
                TensorView<T> gamma_gradient, TensorView<T> beta_gradient, TensorView<T> dx) {
    double of_gamma[channels] = {};
    double of_beta[channels] = {};
    for_each_group(x, epsilon, [&](std::size_t first, std::size_t channel, double mean, double inverse_deviation) {
      double sum = 0;
      double sum_of_products = 0;
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
        const T* const from = x.data() + first + pixel * channels;
        const T* const slope = dy.data() + first + pixel * channels;
        for (std::size_t c = 0; c < width; ++c) {
          const double normalized = (static_cast<double>(from[c]) - mean) * inverse_deviation;
          const double gradient = static_cast<double>(slope[c]);
          of_gamma[channel + c] += gradient * normalized;
          of_beta[channel + c] += gradient;
          const double before = gradient * static_cast<double>(gamma.data()[channel + c]);
          sum += before;
          sum_of_products += before * normalized;
        }
      }
      if (dx.data() == nullptr) return;
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
        const T* const from = x.data() + first + pixel * channels;
        const T* const slope = dy.data() + first + pixel * channels;
        T* const to = dx.data() + first + pixel * channels;
        DIST_INDEPENDENT_LOOP
        for (std::size_t c = 0; c < width; ++c) {
          const double normalized = (static_cast<double>(from[c]) - mean) * inverse_deviation;
          const double before = static_cast<double>(slope[c]) * static_cast<double>(gamma.data()[channel + c]);
          to[c] = static_cast<T>((before - share * (sum + normalized * sum_of_products)) * inverse_deviation);
        }
      }
    });
    for (std::size_t c = 0; c < channels; ++c) {
      gamma_gradient.data()[c] = static_cast<T>(of_gamma[c]);
      beta_gradient.data()[c] = static_cast<T>(of_beta[c]);
    }
  }

 private:
  /// Calls `visit(first, channel, mean, inverse_deviation)` with where the group starts in its image, its first channel
  /// and its statistics. The variance is that of the differences from the mean, which loses no digits.
  template <class Visit>
  static void for_each_group(TensorView<const T> x, double epsilon, Visit&& visit) {
    const std::size_t images = x.size() / (pixels * channels);
    for (std::size_t image = 0; image < images; ++image)
      for (std::size_t channel = 0; channel < channels; channel += width) {
        const std::size_t first = image * pixels * channels + channel;
        double sum = 0;
        for_each_element(x.data() + first, [&](double value) { sum += value; });
        const double mean = sum * share;
        double squares = 0;
        for_each_element(x.data() + first, [&](double value) { squares += (value - mean) * (value - mean); });
        visit(first, channel, mean, 1 / std::sqrt(squares * share + epsilon));
      }
  }
  template <class Visit>
  static void for_each_element(const T* from, Visit&& visit) {
    for (std::size_t pixel = 0; pixel < pixels; ++pixel)
      for (std::size_t c = 0; c < width; ++c) visit(static_cast<double>(from[pixel * channels + c]));
  }
};

}  // namespace dist::nn::reference
