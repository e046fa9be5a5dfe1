#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/context/replica_context.hpp>
#include <dist/core/random.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// Each replica normalises with the statistics of its own rows (spec P19): no communication.
struct PerReplicaStatistics {
  static void combine(const InReplica auto&, std::span<double>) {}
};

/// All replicas normalise with the statistics of the global batch (spec P20), as one replica with all rows would. One
/// collective call per layer in `forward`, and one in `backward`.
struct SynchronizedStatistics {
  static void combine(const InReplica auto& replica, std::span<double> sums) { replica.all_reduce(sum, sums); }
};

/// What Keras' BatchNormalization takes as arguments. To change some, derive and name them again:
///
///   struct Fast : dist::nn::BatchNormalizationOptions { static constexpr double momentum = 0.9; };
///   using Layer = dist::nn::BatchNormalization<dist::nn::PerReplicaStatistics, Fast>;
struct BatchNormalizationOptions {
  static constexpr double momentum = 0.99;  ///< what a moving statistic keeps in a step, 0 to 1
  static constexpr double epsilon = 1e-3;   ///< added to the variance, above 0
  /// Whether the moving variance follows the sample variance, with n - 1 in the denominator, instead of the variance
  /// that the batch was normalised with. Keras 3 has the latter everywhere; so has tf_keras, except for images on one
  /// replica's statistics, where its fused kernel has n - 1.
  static constexpr bool sample_variance = false;
};

/// Normalises each channel, the last axis, over the rows and the axes between: Ioffe and Szegedy, "Batch
/// Normalization", ICML 2015.
///
///   y = gamma * (x - mean) / sqrt(variance + epsilon) + beta
///
/// In training with mean and variance of the batch, which its moving statistics follow:
/// moving = moving * momentum + batch * (1 - momentum). In inference with the moving statistics.
///
/// Each replica updates its own moving statistics with its own batch; outside replica functions they are the mean of
/// the copies. A replica without rows leaves its copy as it is (spec P21), under SynchronizedStatistics as well.
template <class Statistics = PerReplicaStatistics, class Options = BatchNormalizationOptions>
struct BatchNormalization {
  static_assert(Options::momentum >= 0 && Options::momentum <= 1,
                "nn::BatchNormalization's momentum is a share: give one from 0 to 1");
  static_assert(Options::epsilon > 0, "nn::BatchNormalization needs an epsilon above 0, as a variance may be 0");

  template <class In>
  struct On {
    static_assert(In::rank > 0,
                  "nn::BatchNormalization normalises channels, the last axis, and its input has no axis: put "
                  "nn::Reshape before it");
    using Output = In;
    static constexpr std::size_t channels = In::shape()[In::rank == 0 ? 0 : In::rank - 1];
    static constexpr std::string_view name = "batch_normalization";
    static constexpr std::array parameters{ParameterSpec{"gamma", Shape{channels}},
                                           ParameterSpec{"beta", Shape{channels}}};
    static constexpr std::array state{StateSpec{"moving_mean", Shape{channels}, 0},
                                      StateSpec{"moving_variance", Shape{channels}, 1}};
    static constexpr bool is_view = false;
    static constexpr bool uses_replica = true;

    template <std::size_t Which, class T>
    static void initialize(TensorView<T> view, RandomStream) {
      std::ranges::fill(view.elements(), Which == 0 ? T{1} : T{0});
    }

    template <class Backend, class T>
    class Operation {
      using Kernel = typename Backend::template BatchNormalization<channels, T>;
      using Compute = Accumulator<T>;
      using Coefficients = typename Kernel::Coefficients;

     public:
      template <class Call>
      void forward(const Call& call, typename Backend::State& engine, TensorView<const T> x,
                   const ParameterViews<const T, 2>& weights, TensorView<T> y) {
        of_batch_ = Call::training;
        if constexpr (Call::training) {
          take_statistics(call.replica, engine, x);
          if (x.rows() > 0) follow_statistics(call.state);
        } else {
          for (std::size_t c = 0; c < channels; ++c) set_statistics(c, call.state[0][c], call.state[1][c]);
        }
        Coefficients shift;
        for (std::size_t c = 0; c < channels; ++c) {
          scale_[c] = static_cast<Compute>(static_cast<double>(weights[0][c]) * inverse_deviation_[c]);
          shift[c] = static_cast<Compute>(weights[1][c]);
        }
        kernel_.forward(engine, x, mean_, scale_, shift, y);
      }

      /// With n elements per channel, and sums over the batch that was normalised:
      ///
      ///   dx = gamma / deviation * (dy - sum(dy) / n - normalised * sum(dy * normalised) / n)
      template <bool InputGradient>
      void backward(const InReplica auto& replica, typename Backend::State& engine, TensorView<const T> x,
                    const ParameterViews<const T, 2>&, TensorView<const T>, TensorView<T> dy,
                    const ParameterViews<T, 2>& gradients, TensorView<T> dx) {
        const auto of_dy = first_sums();
        const auto of_dy_x = second_sums();
        kernel_.gradient_sums(engine, x, dy, mean_, of_dy, of_dy_x);
        for (std::size_t c = 0; c < channels; ++c) {
          gradients[0][c] = static_cast<T>(of_dy_x[c] * inverse_deviation_[c]);
          gradients[1][c] = static_cast<T>(of_dy[c]);
        }
        if constexpr (InputGradient) {
          Coefficients of_x{};
          Coefficients constant{};
          if (of_batch_) {
            Statistics::combine(replica, std::span<double>{sums_.data(), 2 * channels});
            const double share = no_nan_inverse(count_);
            for (std::size_t c = 0; c < channels; ++c) {
              const double scale = -static_cast<double>(scale_[c]) * share;
              of_x[c] = static_cast<Compute>(scale * inverse_deviation_[c] * inverse_deviation_[c] * of_dy_x[c]);
              constant[c] = static_cast<Compute>(scale * of_dy[c]);
            }
          }
          kernel_.input_gradient(engine, x, dy, mean_, scale_, of_x, constant, dx);
        }
      }

     private:
      [[nodiscard]] auto first_sums() noexcept { return std::span{sums_}.template subspan<0, channels>(); }
      [[nodiscard]] auto second_sums() noexcept { return std::span{sums_}.template subspan<channels, channels>(); }

      [[nodiscard]] static double no_nan_inverse(double count) { return count > 0 ? 1 / count : 0; }

      void set_statistics(std::size_t c, double mean, double variance) {
        mean_[c] = static_cast<Compute>(mean);
        inverse_deviation_[c] = 1 / __builtin_sqrt(variance + Options::epsilon);
      }

      void take_statistics(const InReplica auto& replica, typename Backend::State& engine, TensorView<const T> x) {
        const auto of_x = first_sums();
        const auto of_squares = second_sums();
        kernel_.sums(engine, x, of_x, of_squares);
        sums_[2 * channels] = static_cast<double>(x.size() / channels);
        Statistics::combine(replica, sums_);
        count_ = sums_[2 * channels];
        const double share = no_nan_inverse(count_);
        for (std::size_t c = 0; c < channels; ++c) {
          const double mean = of_x[c] * share;
          const double variance = of_squares[c] * share - mean * mean;
          of_x[c] = mean;
          of_squares[c] = variance < 0 ? 0 : variance;  // below 0 by rounding only; a NaN stays one
          set_statistics(c, mean, of_squares[c]);
        }
      }

      /// From the statistics of the batch, which `take_statistics` left in the sums.
      template <class S>
      void follow_statistics(const ParameterViews<S, 2>& moving) {
        const auto mean = first_sums();
        const auto variance = second_sums();
        const double correction = Options::sample_variance && count_ > 1 ? count_ / (count_ - 1) : 1;
        constexpr double step = 1 - Options::momentum;
        for (std::size_t c = 0; c < channels; ++c) {
          moving[0][c] += static_cast<S>((mean[c] - static_cast<double>(moving[0][c])) * step);
          moving[1][c] += static_cast<S>((variance[c] * correction - static_cast<double>(moving[1][c])) * step);
        }
      }

      Kernel kernel_;
      std::array<double, 2 * channels + 1> sums_;  // in one array, so that one collective call takes them all
      double count_ = 0;
      bool of_batch_ = true;
      Coefficients mean_;
      Coefficients scale_;
      std::array<double, channels> inverse_deviation_;
    };
  };
};

}  // namespace dist::nn
