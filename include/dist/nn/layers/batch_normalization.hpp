#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

#include <dist/context/replica_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/scale_and_shift.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn {

/// Statistics of a replica's rows, without communication (spec P19).
struct PerReplicaStatistics {
  /// Leaves the sums as they are.
  static void combine(const InReplica auto&, const auto&) {}
};

/// Statistics of the global batch, as if one replica had all rows (spec P20). Takes one collective call per layer in
/// `forward`, and one in `backward`.
struct SynchronizedStatistics {
  /// Adds up the replicas' sums. A collective call.
  static void combine(const InReplica auto& replica, const auto& sums) { replica.all_reduce(sum, sums); }
};

/// Keras' constant arguments. To change some, derive a struct and redefine them:
///
///   struct Fast : dist::nn::BatchNormalizationOptions { static constexpr double momentum = 0.9; };
///   using Layer = dist::nn::BatchNormalization<dist::nn::PerReplicaStatistics, Fast>;
struct BatchNormalizationOptions {
  static constexpr double momentum = 0.99;  ///< the share of a moving statistic that a step keeps, 0 to 1
  static constexpr double epsilon = 1e-3;   ///< added to the variance, above 0

  /// True if the moving variance follows the sample variance, which divides by n - 1, instead of the variance that
  /// normalised the batch. Keras 3 never uses it, and tf_keras only in its fused kernel, for images with one
  /// replica's statistics.
  static constexpr bool sample_variance = false;
};

namespace detail {

/// A back end's statistics and coefficients per channel.
template <class Options, std::size_t channels, class Compute>
struct NormalizedChannels {
  double* sums;  // two per channel, all first ones before all second ones; then the number of elements per channel
  double* inverse_deviation;  // 1 / sqrt(variance + epsilon)
  Compute* mean;
  Compute* scale;
  Compute* shift;  // in `backward` the constant term
  Compute* of_x;

  static constexpr std::size_t sums_count = 2 * channels + 1;
  static constexpr std::size_t doubles = sums_count + channels;
  static constexpr std::size_t coefficients = 4 * channels;
  /// Divides buffers of `doubles` and `coefficients` numbers.
  static NormalizedChannels in(double* first, Compute* second) {
    return {first, first + sums_count, second, second + channels, second + 2 * channels, second + 3 * channels};
  }

  [[nodiscard]] DIST_HD double inverse_count() const { return sums[2 * channels] > 0 ? 1 / sums[2 * channels] : 0; }
  template <class T>
  DIST_HD void set(std::size_t c, double mean_of_channel, double variance, const T* gamma, const T* beta) const {
    mean[c] = static_cast<Compute>(mean_of_channel);
    inverse_deviation[c] = 1 / std::sqrt(variance + Options::epsilon);
    scale[c] = static_cast<Compute>(static_cast<double>(gamma[c]) * inverse_deviation[c]);
    shift[c] = static_cast<Compute>(beta[c]);
  }
};

/// Replaces the sums by the statistics of the batch.
template <class Options, std::size_t channels, class Compute, class T>
struct TakeStatistics {
  NormalizedChannels<Options, channels, Compute> of;
  const T* gamma;
  const T* beta;
  DIST_HD void operator()(std::size_t c) const {
    const double share = of.inverse_count();
    const double mean = of.sums[c] * share;
    const double variance = of.sums[channels + c] * share - mean * mean;
    of.sums[c] = mean;
    of.sums[channels + c] = variance < 0 ? 0 : variance;  // negative only by rounding; NaN stays NaN
    of.set(c, mean, of.sums[channels + c], gamma, beta);
  }
};
/// Updates the moving statistics from TakeStatistics, unless the batch has no rows.
template <class Options, std::size_t channels, class Compute, class S>
struct FollowStatistics {
  NormalizedChannels<Options, channels, Compute> of;
  S* moving_mean;
  S* moving_variance;
  DIST_HD void operator()(std::size_t c) const {
    const double count = of.sums[2 * channels];
    if (count == 0) return;
    const double correction = Options::sample_variance && count > 1 ? count / (count - 1) : 1;
    constexpr double step = 1 - Options::momentum;
    moving_mean[c] += static_cast<S>((of.sums[c] - static_cast<double>(moving_mean[c])) * step);
    moving_variance[c] +=
        static_cast<S>((of.sums[channels + c] * correction - static_cast<double>(moving_variance[c])) * step);
  }
};
template <class Options, std::size_t channels, class Compute, class T, class S>
struct UseMovingStatistics {
  NormalizedChannels<Options, channels, Compute> of;
  const T* gamma;
  const T* beta;
  const S* moving_mean;
  const S* moving_variance;
  DIST_HD void operator()(std::size_t c) const {
    of.set(c, static_cast<double>(moving_mean[c]), static_cast<double>(moving_variance[c]), gamma, beta);
  }
};

/// The gradients of gamma and beta, from this replica's sums.
template <class Options, std::size_t channels, class Compute, class T>
struct GradientsOfScaleAndShift {
  NormalizedChannels<Options, channels, Compute> of;
  T* of_gamma;
  T* of_beta;
  DIST_HD void operator()(std::size_t c) const {
    of_gamma[c] = static_cast<T>(of.sums[channels + c] * of.inverse_deviation[c]);
    of_beta[c] = static_cast<T>(of.sums[c]);
  }
};
/// Coefficients of the input's gradient that depend on the batch's statistics; zero in inference.
template <class Options, std::size_t channels, class Compute>
struct GradientOfStatistics {
  NormalizedChannels<Options, channels, Compute> of;
  bool of_batch;
  DIST_HD void operator()(std::size_t c) const {
    const double scale = of_batch ? -static_cast<double>(of.scale[c]) * of.inverse_count() : 0;
    const double deviation = of.inverse_deviation[c];
    of.of_x[c] = of_batch ? static_cast<Compute>(scale * deviation * deviation * of.sums[channels + c]) : Compute{0};
    of.shift[c] = of_batch ? static_cast<Compute>(scale * of.sums[c]) : Compute{0};
  }
};

/// Adds an element and its square to its channel's sums. Float sums over many images lose digits, and a difference of
/// squares even more, so sums are in double.
template <std::size_t channels, class T>
struct SumsOfElements {
  using Sum = double;
  static constexpr std::size_t count = 2;
  const T* x;
  template <class Sums>
  DIST_HD void operator()(std::size_t pixel, std::size_t c, Sums&& sums) const {
    const double value = as_double(x[pixel * channels + c]);
    sums[0] += value;
    sums[1] += value * value;
  }
};
/// Adds dy and dy * (x - mean) to a channel's sums.
template <std::size_t channels, class T>
struct SumsOfGradients {
  using Sum = double;
  static constexpr std::size_t count = 2;
  const T* x;
  const T* dy;
  const Accumulator<T>* mean;
  template <class Sums>
  DIST_HD void operator()(std::size_t pixel, std::size_t c, Sums&& sums) const {
    const double slope = as_double(dy[pixel * channels + c]);
    sums[0] += slope;
    sums[1] += slope * (as_double(x[pixel * channels + c]) - as_double(mean[c]));
  }
};
/// y = (x - mean) * scale + shift, for a pixel.
template <std::size_t channels, class T>
struct NormalizePixel {
  using Compute = Accumulator<T>;
  const T* x;
  const Compute* mean;
  const Compute* scale;
  const Compute* shift;
  T* y;
  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t pixel) const {
    const T* const from = x + pixel * channels;
    T* const to = y + pixel * channels;
    for_each_of(threads, [&](std::size_t c) {
      to[c] = static_cast<T>((static_cast<Compute>(from[c]) - mean[c]) * scale[c] + shift[c]);
    });
  }
};
/// dx = dy * scale + (x - mean) * of_x + shift, for a pixel.
template <std::size_t channels, class T>
struct GradientOfPixel {
  using Compute = Accumulator<T>;
  const T* x;
  const T* dy;
  const Compute* mean;
  const Compute* scale;
  const Compute* of_x;
  const Compute* shift;
  T* dx;
  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t pixel) const {
    const T* const from = x + pixel * channels;
    const T* const slope = dy + pixel * channels;
    T* const to = dx + pixel * channels;
    for_each_of(threads, [&](std::size_t c) {
      to[c] = static_cast<T>(static_cast<Compute>(slope[c]) * scale[c] +
                             (static_cast<Compute>(from[c]) - mean[c]) * of_x[c] + shift[c]);
    });
  }
};

}  // namespace detail

/// Batch normalisation of each channel, the last axis, over the rows and all other axes (Ioffe and Szegedy, "Batch
/// normalization", ICML 2015).
///
///   y = gamma * (x - mean) / sqrt(variance + epsilon) + beta
///
/// Training uses the batch's mean and variance, and updates the moving statistics, which inference uses:
///
///   moving = moving * momentum + batch * (1 - momentum)
///
/// Each replica updates its own copy with its batch; outside replica functions the value is the mean of the copies. A
/// replica without rows keeps its copy (spec P21), and so do all under SynchronizedStatistics if none has rows.
template <class Statistics = PerReplicaStatistics, class Options = BatchNormalizationOptions>
struct BatchNormalization {
  static_assert(Options::momentum >= 0 && Options::momentum <= 1,
                "nn::BatchNormalization needs a momentum from 0 to 1");
  static_assert(Options::epsilon > 0, "nn::BatchNormalization needs an epsilon above 0, because a variance can be 0");

  /// The bound layer.
  template <class In>
  struct On : detail::ScaleAndShift<In::last_extent> {
    static_assert(In::rank > 0,
                  "nn::BatchNormalization normalises channels (the last axis), but its input has no axis: put "
                  "nn::Reshape before it");
    using Layer = BatchNormalization;
    using Output = In;
    /// The number of channels, which have separate statistics.
    static constexpr std::size_t channels = In::last_extent;
    static constexpr std::string_view name = "batch_normalization";
    static constexpr std::array state{StateSpec{"moving_mean", Shape{channels}, 0},
                                      StateSpec{"moving_variance", Shape{channels}, 1}};
    static constexpr bool is_view = false;
    static constexpr bool uses_replica = true;

    /// Computes the layer.
    template <class Backend, class T>
    class Operation {
      using Compute = Accumulator<T>;
      using Device = typename Backend::Device;
      using Channels = detail::NormalizedChannels<Options, channels, Compute>;

     public:
      template <class Call>
      void forward(const Call& call, typename Backend::State& engine, ViewOn<Backend, const T> x,
                   const ParameterViewsOn<Backend, const T, 2>& weights, ViewOn<Backend, T> y) {
        const auto queue = call.replica.queue();
        const Channels of = channels_on(queue);
        const T* const gamma = weights[0].data();
        const T* const beta = weights[1].data();
        auto* const moving_mean = call.state[0].data();
        auto* const moving_variance = call.state[1].data();
        using S = std::remove_cvref_t<decltype(*moving_mean)>;
        of_batch_ = Call::training;
        if constexpr (Call::training) {
          detail::sum_columns<Backend>(engine, x.size() / channels, channels,
                                       detail::SumsOfElements<channels, T>{x.data()}, of.sums);
          const Span<double> sums{of.sums, Channels::sums_count};
          queue.fill(sums.subspan(2 * channels, 1), static_cast<double>(x.size() / channels));
          Statistics::combine(call.replica, sums);
          queue.for_each({0, channels}, detail::TakeStatistics<Options, channels, Compute, T>{of, gamma, beta});
          queue.for_each({0, channels},
                         detail::FollowStatistics<Options, channels, Compute, S>{of, moving_mean, moving_variance});
        } else {
          queue.for_each({0, channels}, detail::UseMovingStatistics<Options, channels, Compute, T, S>{
                                            of, gamma, beta, moving_mean, moving_variance});
        }
        detail::for_each_row<Backend>(
            engine, x.size() / channels, channels,
            detail::NormalizePixel<channels, T>{x.data(), of.mean, of.scale, of.shift, y.data()});
      }

      /// With n elements per channel, and sums over the batch that determined the statistics:
      ///
      ///   dx = gamma / deviation * (dy - sum(dy) / n - normalised * sum(dy * normalised) / n)
      template <bool InputGradient>
      void backward(const InReplica auto& replica, typename Backend::State& engine, ViewOn<Backend, const T> x,
                    const ParameterViewsOn<Backend, const T, 2>&, ViewOn<Backend, const T>, ViewOn<Backend, T> dy,
                    const ParameterViewsOn<Backend, T, 2>& gradients, ViewOn<Backend, T> dx) {
        const auto queue = replica.queue();
        const Channels of = channels_on(queue);
        detail::sum_columns<Backend>(engine, x.size() / channels, channels,
                                     detail::SumsOfGradients<channels, T>{x.data(), dy.data(), of.mean}, of.sums);
        queue.for_each({0, channels}, detail::GradientsOfScaleAndShift<Options, channels, Compute, T>{
                                          of, gradients[0].data(), gradients[1].data()});
        if constexpr (InputGradient) {
          if (of_batch_) Statistics::combine(replica, Span<double>{of.sums, 2 * channels});
          queue.for_each({0, channels}, detail::GradientOfStatistics<Options, channels, Compute>{of, of_batch_});
          detail::for_each_row<Backend>(engine, x.size() / channels, channels,
                                        detail::GradientOfPixel<channels, T>{x.data(), dy.data(), of.mean, of.scale,
                                                                             of.of_x, of.shift, dx.data()});
        }
      }

     private:
      template <class Element>
      using Span = SpanIn<Element, typename Device::Space>;

      [[nodiscard]] Channels channels_on(const typename Device::Queue& queue) {
        if (doubles_.data() == nullptr) {
          doubles_ = detail::make_layer_memory<Backend, double>(queue, Channels::doubles);
          coefficients_ = detail::make_layer_memory<Backend, Compute>(queue, Channels::coefficients);
        }
        return Channels::in(doubles_.data(), coefficients_.data());
      }

      detail::LayerMemory<Backend, double> doubles_;
      detail::LayerMemory<Backend, Compute> coefficients_;
      bool of_batch_ = true;
    };
  };
};

}  // namespace dist::nn
