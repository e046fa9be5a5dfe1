#pragma once

#include <cmath>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cuda/column_sums.cuh>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/memory.cuh>
#include <dist/nn/cuda/segment_sums.cuh>
#include <dist/nn/cuda/state.cuh>

namespace dist::nn::cuda {

/// Where the elements of groups of channels lie, in images one after another.
template <class Geometry>
struct Groups {
  static constexpr std::size_t channels = Geometry::channels;
  static constexpr std::size_t width = channels / Geometry::groups;
  static constexpr std::size_t size = Geometry::pixels * width;

  /// Element `i` of a group.
  [[nodiscard]] static DIST_HD std::size_t element(std::size_t group, std::size_t i) {
    const std::size_t pixel = group / Geometry::groups * Geometry::pixels + i / width;
    return pixel * channels + group % Geometry::groups * width + i % width;
  }
  [[nodiscard]] static DIST_HD std::size_t group_of(std::size_t element) {
    return element / (Geometry::pixels * channels) * Geometry::groups + element % channels / width;
  }
};

/// Of a group's elements.
struct GroupStatistics {
  double mean, inverse_deviation;
};

/// Of the elements of a group, and of their squares.
template <class Geometry, class T>
struct SumsOfGroup {
  using Sum = double;
  static constexpr std::size_t count = 2;
  const T* x;
  DIST_HD void operator()(std::size_t group, std::size_t i, Sum (&sums)[count]) const {
    const auto value = static_cast<Sum>(x[Groups<Geometry>::element(group, i)]);
    sums[0] += value;
    sums[1] += value * value;
  }
};
template <class Geometry>
struct StatisticsOfSums {
  const double* sums;
  double epsilon;
  GroupStatistics* to;
  DIST_HD void operator()(std::size_t group) const {
    constexpr double share = 1.0 / static_cast<double>(Groups<Geometry>::size);
    const double mean = sums[2 * group] * share;
    const double variance = sums[2 * group + 1] * share - mean * mean;
    to[group] = {mean, 1 / std::sqrt((variance < 0 ? 0 : variance) + epsilon)};
  }
};
template <class Geometry, class T>
struct NormalizeGroups {
  const T* x;
  const GroupStatistics* statistics;
  const T* gamma;
  const T* beta;
  T* y;
  DIST_HD void operator()(std::size_t i) const {
    const GroupStatistics of = statistics[Groups<Geometry>::group_of(i)];
    const std::size_t c = i % Geometry::channels;
    y[i] = (x[i] - static_cast<T>(of.mean)) * static_cast<T>(of.inverse_deviation) * gamma[c] + beta[c];
  }
};

/// Of the gradients with respect to a group's normalised elements, and of these times the elements' distances from the mean.
template <class Geometry, class T>
struct GradientSumsOfGroup {
  using Sum = double;
  static constexpr std::size_t count = 2;
  const T* x;
  const T* dy;
  const T* gamma;
  const GroupStatistics* statistics;
  DIST_HD void operator()(std::size_t group, std::size_t i, Sum (&sums)[count]) const {
    const std::size_t element = Groups<Geometry>::element(group, i);
    const Sum slope = static_cast<Sum>(dy[element]) * static_cast<Sum>(gamma[element % Geometry::channels]);
    sums[0] += slope;
    sums[1] += slope * (static_cast<Sum>(x[element]) - statistics[group].mean);
  }
};
template <class Geometry, class T>
struct GradientOfGroups {
  const T* x;
  const T* dy;
  const T* gamma;
  const GroupStatistics* statistics;
  const double* sums;
  T* dx;
  DIST_HD void operator()(std::size_t i) const {
    constexpr double share = 1.0 / static_cast<double>(Groups<Geometry>::size);
    const std::size_t group = Groups<Geometry>::group_of(i);
    const GroupStatistics of = statistics[group];
    const T factor = static_cast<T>(of.inverse_deviation);
    const T normalized = (x[i] - static_cast<T>(of.mean)) * factor;
    const T constant = static_cast<T>(share * sums[2 * group]);
    const T of_normalized = static_cast<T>(share * of.inverse_deviation * sums[2 * group + 1]);
    dx[i] = (dy[i] * gamma[i % Geometry::channels] - constant - normalized * of_normalized) * factor;
  }
};
/// Of a channel's gradients times the normalised elements, and of its gradients.
template <class Geometry, class T>
struct SumsOfChannel {
  using Sum = double;
  static constexpr std::size_t count = 2;
  const T* x;
  const T* dy;
  const GroupStatistics* statistics;
  DIST_HD void operator()(std::size_t element, std::size_t, Sum (&sums)[count]) const {
    const GroupStatistics of = statistics[Groups<Geometry>::group_of(element)];
    const auto slope = static_cast<Sum>(dy[element]);
    sums[0] += slope * ((static_cast<Sum>(x[element]) - of.mean) * of.inverse_deviation);
    sums[1] += slope;
  }
};
template <class T>
struct TakeChannelSums {
  const double* sums;
  std::size_t channels;
  T* of_gamma;
  T* of_beta;
  DIST_HD void operator()(std::size_t c) const {
    of_gamma[c] = static_cast<T>(sums[c]);
    of_beta[c] = static_cast<T>(sums[channels + c]);
  }
};

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with the statistics of each group of channels over all pixels
/// of one image. Keeps the statistics from `forward` to `backward`. Sums are in double.
///
/// `Geometry` has `pixels`, `channels`, `groups`; with one pixel and one group this is layer normalisation.
template <class Geometry, class T>
class GroupNormalization {
  static constexpr std::size_t channels = Geometry::channels;

 public:
  void forward(State& state, View<const T> x, View<const T> gamma, View<const T> beta, double epsilon, View<T> y) {
    const std::size_t groups = groups_of(x);
    channel_sums_.reserve(state.queue(), 2 * channels);
    statistics_.reserve(state.queue(), groups);
    const double* const sums = sum_segments(state, groups, Groups<Geometry>::size, SumsOfGroup<Geometry, T>{x.data()});
    state.queue().for_each({0, groups}, StatisticsOfSums<Geometry>{sums, epsilon, statistics_.data()});
    state.queue().for_each(
        {0, x.size()}, NormalizeGroups<Geometry, T>{x.data(), statistics_.data(), gamma.data(), beta.data(), y.data()});
  }

  /// With n = dy * gamma over a group: dx = (n - mean(n) - normalised * mean(n * normalised)) / deviation. Overwrites the
  /// gradients of gamma and beta, and dx where it has elements. After a `forward` with this x.
  void backward(State& state, View<const T> x, View<const T> gamma, View<const T> dy, View<T> gamma_gradient,
                View<T> beta_gradient, View<T> dx) {
    const GroupStatistics* const statistics = statistics_.data();
    if (dx.data() != nullptr) {
      const double* const sums =
          sum_segments(state, groups_of(x), Groups<Geometry>::size,
                       GradientSumsOfGroup<Geometry, T>{x.data(), dy.data(), gamma.data(), statistics});
      state.queue().for_each(
          {0, x.size()}, GradientOfGroups<Geometry, T>{x.data(), dy.data(), gamma.data(), statistics, sums, dx.data()});
    }
    sum_columns(state, x.size() / channels, channels, SumsOfChannel<Geometry, T>{x.data(), dy.data(), statistics},
                channel_sums_.data());
    state.queue().for_each(
        {0, channels}, TakeChannelSums<T>{channel_sums_.data(), channels, gamma_gradient.data(), beta_gradient.data()});
  }

 private:
  [[nodiscard]] static std::size_t groups_of(View<const T> x) { return x.size() / Groups<Geometry>::size; }

  Memory<GroupStatistics> statistics_;
  Memory<double> channel_sums_;
};

}  // namespace dist::nn::cuda
