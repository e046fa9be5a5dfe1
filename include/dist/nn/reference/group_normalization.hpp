#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn::reference {

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with the statistics of each group of channels over all pixels
/// of one image, and a gamma and a beta for each channel. Keeps the statistics from `forward` to `backward`.
///
/// Sums are in double whatever the elements are, as in BatchNormalization, over 16 partial sums so that a compiler may use
/// vector registers. Bound by memory, so other CPU back ends use it too.
///
/// `Geometry` has `pixels`, `channels`, `groups`; with one pixel and one group this is layer normalisation.
template <class Geometry, class T>
class GroupNormalization {
  using Compute = Accumulator<T>;
  static constexpr std::size_t pixels = Geometry::pixels;
  static constexpr std::size_t channels = Geometry::channels;
  static constexpr std::size_t groups = Geometry::groups;
  static constexpr std::size_t width = channels / groups;
  static constexpr double share = 1.0 / static_cast<double>(pixels * width);

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<const T> gamma, TensorView<const T> beta, double epsilon,
               TensorView<T> y) {
    const std::size_t count = 2 * groups_of(x);
    if (statistics_.size() < count) statistics_ = AlignedBuffer<double>(count);
    for_each_group(x, [&](std::size_t first, std::size_t channel, double& mean, double& inverse_deviation) {
      const T* const from = x.data() + first;
      mean = share *
             sums_over<1>([from](std::size_t i, std::size_t) { return std::array{static_cast<double>(from[i])}; })[0];
      // Of the differences from the mean, which loses no digits.
      const auto [squares] = sums_over<1>([from, mean](std::size_t i, std::size_t) {
        const double difference = static_cast<double>(from[i]) - mean;
        return std::array{difference * difference};
      });
      inverse_deviation = 1 / std::sqrt(squares * share + epsilon);
      const Compute center = static_cast<Compute>(mean);
      const Compute factor = static_cast<Compute>(inverse_deviation);
      const T* const scale = gamma.data() + channel;
      const T* const shift = beta.data() + channel;
      T* const to = y.data() + first;
      for_each([=](std::size_t i, std::size_t c) {
        const Compute normalized = (static_cast<Compute>(from[i]) - center) * factor;
        to[i] = static_cast<T>(normalized * static_cast<Compute>(scale[c]) + static_cast<Compute>(shift[c]));
      });
    });
  }

  /// With n = dy * gamma over a group: dx = (n - mean(n) - normalised * mean(n * normalised)) / deviation. Overwrites the
  /// gradients of gamma and beta, and dx where it has elements. After a `forward` with this x.
  template <class State>
  void backward(State&, TensorView<const T> x, TensorView<const T> gamma, TensorView<const T> dy,
                TensorView<T> gamma_gradient, TensorView<T> beta_gradient, TensorView<T> dx) {
    double of_gamma[channels] = {};
    double of_beta[channels] = {};
    for_each_group(x, [&](std::size_t first, std::size_t channel, double mean, double inverse_deviation) {
      const T* const from = x.data() + first;
      const T* const slope = dy.data() + first;
      const T* const scale = gamma.data() + channel;
      double* const to_gamma = of_gamma + channel;
      double* const to_beta = of_beta + channel;
      const auto [sum, sum_of_products] = sums_over<2>([=](std::size_t i, std::size_t c) {
        const double gradient = static_cast<double>(slope[i]);
        const double normalized = (static_cast<double>(from[i]) - mean) * inverse_deviation;
        to_gamma[c] += gradient * normalized;
        to_beta[c] += gradient;
        const double before = gradient * static_cast<double>(scale[c]);
        return std::array{before, before * normalized};
      });
      if (dx.data() == nullptr) return;
      const Compute center = static_cast<Compute>(mean);
      const Compute factor = static_cast<Compute>(inverse_deviation);
      const Compute constant = static_cast<Compute>(share * sum);
      const Compute of_normalized = static_cast<Compute>(share * sum_of_products);
      T* const to = dx.data() + first;
      for_each([=](std::size_t i, std::size_t c) {
        const Compute normalized = (static_cast<Compute>(from[i]) - center) * factor;
        const Compute before = static_cast<Compute>(slope[i]) * static_cast<Compute>(scale[c]);
        to[i] = static_cast<T>((before - constant - normalized * of_normalized) * factor);
      });
    });
    for (std::size_t c = 0; c < channels; ++c) {
      gamma_gradient.data()[c] = static_cast<T>(of_gamma[c]);
      beta_gradient.data()[c] = static_cast<T>(of_beta[c]);
    }
  }

 private:
  [[nodiscard]] static std::size_t groups_of(TensorView<const T> x) { return x.size() / (pixels * width); }

  /// Calls `visit(first, channel, mean, inverse_deviation)` with where a group starts, its first channel, and the place of
  /// its statistics.
  template <class Visit>
  void for_each_group(TensorView<const T> x, Visit&& visit) {
    const std::size_t count = groups_of(x);
    for (std::size_t group = 0; group < count; ++group) {
      const std::size_t channel = group % groups * width;
      visit(group / groups * pixels * channels + channel, channel, statistics_.data()[2 * group],
            statistics_.data()[2 * group + 1]);
    }
  }

  /// Calls `visit(i, c)` for all elements of a group: their places from where it starts, and their channels in it.
  template <class Visit>
  static void for_each(const Visit& visit) {
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      DIST_INDEPENDENT_LOOP
      for (std::size_t c = 0; c < width; ++c) visit(pixel * channels + c, c);
    }
  }
  /// The sums of the numbers that `values(i, c)` returns, over the same.
  template <std::size_t Count, class Values>
  [[nodiscard]] static std::array<double, Count> sums_over(const Values& values) {
    constexpr std::size_t lanes = 16;
    double partial[Count][lanes] = {};
    std::array<double, Count> sums{};
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      std::size_t c = 0;
      for (; c + lanes <= width; c += lanes) {
        DIST_INDEPENDENT_LOOP
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          const std::array<double, Count> each = values(pixel * channels + c + lane, c + lane);
          for (std::size_t k = 0; k < Count; ++k) partial[k][lane] += each[k];
        }
      }
      for (; c < width; ++c) {
        const std::array<double, Count> each = values(pixel * channels + c, c);
        for (std::size_t k = 0; k < Count; ++k) sums[k] += each[k];
      }
    }
    for (std::size_t k = 0; k < Count; ++k)
      for (const double lane : partial[k]) sums[k] += lane;
    return sums;
  }

  AlignedBuffer<double> statistics_;  // mean and inverse deviation of each group
};

}  // namespace dist::nn::reference
