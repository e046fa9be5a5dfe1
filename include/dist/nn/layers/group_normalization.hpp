#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/scale_and_shift.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn::detail {

/// The sizes of groups of channels, the last axis of `In`, over all pixels if `PixelsTogether`.
template <class In, std::size_t Groups, bool PixelsTogether>
struct GroupGeometry {
  static constexpr std::size_t channels = In::rank == 0 ? Groups : In::last_extent;
  static constexpr std::size_t groups = Groups;
  static constexpr std::size_t pixels = PixelsTogether ? In::elements / channels : 1;
  static constexpr std::size_t group_size = pixels * (channels / groups);
};

/// An element's offset in memory from its group's first, and its channel within the group.
struct GroupIndex {
  std::size_t offset, channel;
};
/// The threads that visit a group: adjacent channels of `Geometry::pixels` pixels.
template <class Geometry, class Threads>
struct ThreadsOfGroup {
  static constexpr std::size_t width = Geometry::channels / Geometry::groups;
  Threads threads;

  [[nodiscard]] static DIST_HD constexpr GroupIndex index(std::size_t k) {
    return {k / width * Geometry::channels + k % width, k % width};
  }
};
template <class Geometry, class Threads, class F>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE auto sum_of(const ThreadsOfGroup<Geometry, Threads>& group, const F& f) {
  return sum_of(group.threads, [&](std::size_t k) { return f(group.index(k)); });
}
template <class Geometry, class Threads, class F>
DIST_HD DIST_ALWAYS_INLINE void for_each_of(const ThreadsOfGroup<Geometry, Threads>& group, const F& f) {
  for_each_of(group.threads, [&](std::size_t k) { f(group.index(k)); });
}
/// A single thread visits pixel by pixel, so that the compiler can vectorise.
template <class Geometry, class F>
[[nodiscard]] DIST_HD DIST_ALWAYS_INLINE auto sum_of(const ThreadsOfGroup<Geometry, ThreadOfRow>& group, const F& f) {
  decltype(f(GroupIndex{})) sum{};
  for (std::size_t pixel = 0; pixel < Geometry::pixels; ++pixel)
    sum += sum_of(ThreadOfRow{group.width}, [&](std::size_t c) {
      return f(GroupIndex{pixel * Geometry::channels + c, c});
    });
  return sum;
}
template <class Geometry, class F>
DIST_HD DIST_ALWAYS_INLINE void for_each_of(const ThreadsOfGroup<Geometry, ThreadOfRow>& group, const F& f) {
  for (std::size_t pixel = 0; pixel < Geometry::pixels; ++pixel)
    for_each_of(ThreadOfRow{group.width}, [&](std::size_t c) { f(GroupIndex{pixel * Geometry::channels + c, c}); });
}

/// The elements of a group.
template <class T>
struct ElementsOfGroup {
  T* first;
  DIST_HD void set(GroupIndex k, Accumulator<T> value) const { first[k.offset] = static_cast<T>(value); }
  [[nodiscard]] DIST_HD T& operator[](GroupIndex k) const { return first[k.offset]; }
};
/// Values per channel of a group.
template <class T>
struct ChannelsOfGroup {
  T* first;
  [[nodiscard]] DIST_HD T& operator[](GroupIndex k) const { return first[k.channel]; }
};

/// The mean, and 1 / sqrt(variance + epsilon).
template <class Number>
struct GroupStatistics {
  Number mean, inverse_deviation;
};
/// Sums are in double. Squared differences from the mean lose no digits.
template <class Threads, class X>
[[nodiscard]] DIST_HD auto statistics_of_group(const Threads& group, X x, std::size_t size, double epsilon) {
  using std::sqrt;
  using Number = decltype(sum_of(group, [&](auto k) { return as_double(x[k]); }));
  const auto share = Number(1 / static_cast<double>(size));
  const Number mean = sum_of(group, [&](auto k) { return as_double(x[k]); }) * share;
  const Number variance = share * sum_of(group, [&](auto k) {
                            const auto difference = as_double(x[k]) - mean;
                            return difference * difference;
                          });
  return GroupStatistics<Number>{mean, Number(1) / sqrt(variance + Number(epsilon))};
}
/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, in type `Compute`.
template <class Compute, class Threads, class X, class Number, class Channels, class Y>
DIST_HD void normalize_group(const Threads& group, X x, const GroupStatistics<Number>& statistics, Channels gamma,
                             Channels beta, Y y) {
  const Compute center = static_cast<Compute>(statistics.mean);
  const Compute factor = static_cast<Compute>(statistics.inverse_deviation);
  for_each_of(group, [&](auto k) {
    const Compute normalized = (static_cast<Compute>(x[k]) - center) * factor;
    y.set(k, normalized * static_cast<Compute>(gamma[k]) + static_cast<Compute>(beta[k]));
  });
}

/// The indices of a group's first element and channel.
template <class Geometry>
struct FirstOfGroup {
  std::size_t element, channel;
  DIST_HD explicit FirstOfGroup(std::size_t group)
      : element(group / Geometry::groups * Geometry::pixels * Geometry::channels),
        channel(group % Geometry::groups * (Geometry::channels / Geometry::groups)) {
    element += channel;
  }
};

/// Normalises a group and stores its statistics.
template <class Geometry, class T>
struct NormalizeGroup {
  const T* x;
  const T* gamma;
  const T* beta;
  double epsilon;
  GroupStatistics<double>* statistics;
  T* y;

  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t number) const {
    const FirstOfGroup<Geometry> first{number};
    const ThreadsOfGroup<Geometry, Threads> group{threads};
    const ElementsOfGroup<const T> values{x + first.element};
    const auto found = statistics_of_group(group, values, Geometry::group_size, epsilon);
    if (threads.is_first()) statistics[number] = found;
    normalize_group<Accumulator<T>>(group, values, found, ChannelsOfGroup<const T>{gamma + first.channel},
                                    ChannelsOfGroup<const T>{beta + first.channel},
                                    ElementsOfGroup<T>{y + first.element});
  }
};

/// Adds an element's terms of the gradients of gamma and beta.
template <class Geometry, class T>
struct GradientsOfChannel {
  using Sum = double;
  static constexpr std::size_t count = 2;
  const T* x;
  const T* dy;
  const GroupStatistics<double>* statistics;
  template <class Sums>
  DIST_HD void operator()(std::size_t pixel, std::size_t channel, Sums&& sums) const {
    constexpr std::size_t width = Geometry::channels / Geometry::groups;
    const std::size_t group = Geometry::groups == 1 ? 0 : channel / width;
    const GroupStatistics<double>& of = statistics[pixel / Geometry::pixels * Geometry::groups + group];
    const std::size_t element = pixel * Geometry::channels + channel;
    const double slope = as_double(dy[element]);
    sums[0] += slope * ((as_double(x[element]) - of.mean) * of.inverse_deviation);
    sums[1] += slope;
  }
};
/// With n = dy * gamma over a group: dx = (n - mean(n) - normalised * mean(n * normalised)) / deviation.
template <class Geometry, class T>
struct GradientOfGroup {
  using Compute = Accumulator<T>;
  const T* x;
  const T* gamma;
  const T* dy;
  const GroupStatistics<double>* statistics;
  double* channel_sums;
  T* dx;

  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t number) const {
    const FirstOfGroup<Geometry> first{number};
    const ThreadsOfGroup<Geometry, Threads> group{threads};
    const ElementsOfGroup<const T> values{x + first.element}, slopes{dy + first.element};
    const ChannelsOfGroup<const T> scale{gamma + first.channel};
    const ElementsOfGroup<T> to{dx + first.element};
    const double center = statistics[number].mean, inverse_deviation = statistics[number].inverse_deviation;
    constexpr double share = 1.0 / static_cast<double>(Geometry::group_size);
    const ChannelsOfGroup<double> of_gamma{channel_sums + first.channel};
    const ChannelsOfGroup<double> of_beta{channel_sums + Geometry::channels + first.channel};
    const auto sums = sum_of(group, [&](auto k) {
      const double slope = as_double(slopes[k]);
      const double normalized = (as_double(values[k]) - center) * inverse_deviation;
      if constexpr (std::same_as<Threads,
                                 ThreadOfRow>) {  // replaces sum_columns if one thread visits all rows
        of_gamma[k] += slope * normalized;
        of_beta[k] += slope;
      }
      const double before = slope * as_double(scale[k]);
      return TwoSums{before, before * normalized};
    });
    const auto constant = static_cast<Compute>(share * sums.first);
    const auto of_normalized = static_cast<Compute>(share * sums.second);
    const auto middle = static_cast<Compute>(center), factor = static_cast<Compute>(inverse_deviation);
    for_each_of(group, [&](auto k) {
      const Compute normalized = (static_cast<Compute>(values[k]) - middle) * factor;
      const Compute before = static_cast<Compute>(slopes[k]) * static_cast<Compute>(scale[k]);
      to.set(k, (before - constant - normalized * of_normalized) * factor);
    });
  }
};
/// Converts the gradients of gamma and beta.
template <class T>
struct TakeChannelGradients {
  const double* sums;
  std::size_t channels;
  T* of_gamma;
  T* of_beta;
  DIST_HD void operator()(std::size_t c) const {
    of_gamma[c] = static_cast<T>(sums[c]);
    of_beta[c] = static_cast<T>(sums[channels + c]);
  }
};

/// The Operation of layers that normalise within rows. Keeps the statistics until `backward`.
template <class Backend, class Geometry, class Options, class T>
class GroupNormalizationOperation {
  static constexpr std::size_t channels = Geometry::channels;

 public:
  void forward(typename Backend::State& state, ViewOn<Backend, const T> x,
               const ParameterViewsOn<Backend, const T, 2>& parameters, ViewOn<Backend, T> y) {
    const std::size_t groups = x.size() / Geometry::group_size;
    if (reserved_ < groups) {
      statistics_ = make_layer_memory<Backend, GroupStatistics<double>>(queue_of<Backend>(state), groups);
      reserved_ = groups;
    }
    for_each_row<Backend>(state, groups, Geometry::group_size,
                          NormalizeGroup<Geometry, T>{x.data(), parameters[0].data(), parameters[1].data(),
                                                      Options::epsilon, statistics_.data(), y.data()});
  }
  template <bool InputGradient>
  void backward(typename Backend::State& state, ViewOn<Backend, const T> x,
                const ParameterViewsOn<Backend, const T, 2>& parameters, ViewOn<Backend, const T>,
                ViewOn<Backend, T> dy, const ParameterViewsOn<Backend, T, 2>& gradients, ViewOn<Backend, T> dx) {
    const auto queue = queue_of<Backend>(state);
    if (channel_sums_.data() == nullptr) channel_sums_ = make_layer_memory<Backend, double>(queue, 2 * channels);
    constexpr bool in_one_pass = InputGradient && Backend::Device::Space::host_accessible;
    if constexpr (in_one_pass)
      std::fill_n(channel_sums_.data(), 2 * channels, 0.0);
    else
      sum_columns<Backend>(state, x.size() / channels, channels,
                           GradientsOfChannel<Geometry, T>{x.data(), dy.data(), statistics_.data()},
                           channel_sums_.data());
    if constexpr (InputGradient)
      for_each_row<Backend>(state, x.size() / Geometry::group_size, Geometry::group_size,
                            GradientOfGroup<Geometry, T>{x.data(), parameters[0].data(), dy.data(), statistics_.data(),
                                                         channel_sums_.data(), dx.data()});
    queue.for_each({0, channels},
                   TakeChannelGradients<T>{channel_sums_.data(), channels, gradients[0].data(), gradients[1].data()});
  }

 private:
  LayerMemory<Backend, GroupStatistics<double>> statistics_;
  LayerMemory<Backend, double> channel_sums_;
  std::size_t reserved_ = 0;
};

}  // namespace dist::nn::detail

namespace dist::nn {

/// Keras' constant argument. To change it, derive a struct and redefine it.
struct GroupNormalizationOptions {
  static constexpr double epsilon = 1e-3;  ///< added to the variance, above 0
};

/// Group normalisation: normalises each group of channels, the last axis, over all other axes of a row (Wu and He,
/// "Group normalization", ECCV 2018). One group per channel is instance normalisation.
///
///   y = gamma * (x - mean) / sqrt(variance + epsilon) + beta
///
/// Rows are independent, so training equals inference, with any number of replicas.
template <std::size_t Groups, class Options = GroupNormalizationOptions>
struct GroupNormalization {
  static_assert(Groups > 0, "nn::GroupNormalization needs at least one group");
  static_assert(Options::epsilon > 0, "nn::GroupNormalization needs an epsilon above 0, because a variance can be 0");

  /// The bound layer.
  template <class In>
  struct On : detail::ScaleAndShift<In::last_extent> {
    static_assert(
        In::rank > 0,
        "nn::GroupNormalization normalises along the last axis, but its input has no axis: put nn::Reshape before it");
    using Geometry = detail::GroupGeometry<In, Groups, true>;
    static_assert(
        Geometry::channels % Groups == 0,
        "nn::GroupNormalization divides the channels of its input into groups of equal size: give a number of "
        "groups that divides the number of channels");
    using Layer = GroupNormalization;
    using Output = In;
    static constexpr std::string_view name = "group_normalization";
    static constexpr bool is_view = false;

    template <class Backend, class T>
    using Operation = detail::GroupNormalizationOperation<Backend, Geometry, Options, T>;
  };
};

/// Keras' constant argument. To change it, derive a struct and redefine it.
struct LayerNormalizationOptions {
  static constexpr double epsilon = 1e-3;  ///< added to the variance, above 0
};

/// Layer normalisation of each row, or each pixel, over its channels, the last axis (Ba, Kiros and Hinton, "Layer
/// normalization", 2016).
///
///   y = gamma * (x - mean) / sqrt(variance + epsilon) + beta
///
/// Rows are independent, so training equals inference, with any number of replicas.
template <class Options = LayerNormalizationOptions>
struct LayerNormalization {
  static_assert(Options::epsilon > 0, "nn::LayerNormalization needs an epsilon above 0, because a variance can be 0");

  /// The bound layer.
  template <class In>
  struct On : detail::ScaleAndShift<In::last_extent> {
    static_assert(
        In::rank > 0,
        "nn::LayerNormalization normalises along the last axis, but its input has no axis: put nn::Reshape before it");
    using Geometry = detail::GroupGeometry<In, 1, false>;
    using Layer = LayerNormalization;
    using Output = In;
    static constexpr std::string_view name = "layer_normalization";
    static constexpr bool is_view = false;

    template <class Backend, class T>
    using Operation = detail::GroupNormalizationOperation<Backend, Geometry, Options, T>;
  };
};

}  // namespace dist::nn
