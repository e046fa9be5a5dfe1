#pragma once

#include <cmath>
#include <concepts>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

/// The mean of |output - target| over a row's elements, with slope 0 at 0. Targets have the outputs' shape.
struct MeanAbsoluteError {
  static constexpr std::string_view name = "mean_absolute_error";

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    const T difference = output - target;
    using detail::select;
    return select(difference < T{0}, -difference, difference);
  }
  /// Returns the sign of the difference; NaN for NaN.
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    const T difference = output - target;
    using detail::select;
    return select(difference > T{0}, T{1}, select(difference < T{0}, T{-1}, difference));
  }
};

/// The mean of (output - target)^2 over a row's elements. Targets have the outputs' shape.
struct MeanSquaredError {
  static constexpr std::string_view name = "mean_squared_error";

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    const T difference = output - target;
    return difference * difference;
  }
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    return T{2} * (output - target);
  }
};

#if defined(DIST_COMPILED) && !defined(__CUDACC__)
namespace detail {
extern template float loss_of_row(const MeanAbsoluteError&, Row<const float>, Row<const float>);
extern template float loss_of_row(const MeanSquaredError&, Row<const float>, Row<const float>);
extern template float loss_of_row(const MeanSquaredError&, Row<const float>, Row<const float>, float, Row<float>);
}  // namespace detail
#endif

/// Returns the loss of this replica's rows of a global batch, in custom training loops (spec P01, P04), and writes its
/// gradient to `outputs.gradient`. `strategy.reduce(dist::sum, …)` of the replicas' `value()` is the mean over the
/// global batch. `sample_weight` is one number per row.
template <DifferentiableOutputs Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] auto mean_squared_error(const InReplica auto& replica, const Outputs& outputs, const Targets& targets,
                                      GlobalBatchSize global_batch, const Weights& sample_weight = {}) {
  return compute_loss(MeanSquaredError{}, replica, outputs, targets, global_batch, sample_weight);
}
/// Returns the loss in a traced step, as a traced number.
template <class Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] auto mean_squared_error(const InTrace auto& replica, const Outputs& outputs, const Targets& targets,
                                      GlobalBatchSize global_batch, const Weights& sample_weight = {}) {
  return compute_loss(MeanSquaredError{}, replica, outputs, targets, global_batch, sample_weight);
}

/// The mean over a row's elements of d^2 / 2 if |d| <= `delta`, else delta |d| - delta^2 / 2, with d = output - target
/// (Huber: "Robust estimation of a location parameter", 1964). Targets have the outputs' shape.
struct Huber {
  static constexpr std::string_view name = "huber";

  float delta = 1;  ///< the difference from which the loss is linear

  /// Throws ShapeMismatch, and InvalidArgument for a delta that is not positive.
  template <std::floating_point T, class Target, dist::MemorySpace Where>
  void check(TensorView<const T, Where> outputs, TensorView<const Target, Where> targets) const {
    detail::require_positive(name, "delta", delta);
    require_targets(name, outputs, targets, outputs.row_size());
  }

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    const T difference = output - target;
    using detail::select;
    const T size = select(difference < T{0}, -difference, difference);
    const T limit = static_cast<T>(delta);
    return select(size <= limit, T(0.5) * difference * difference, limit * size - T(0.5) * limit * limit);
  }
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    const T difference = output - target;
    const T limit = static_cast<T>(delta);
    using detail::select;
    return select(difference > limit, limit, select(difference < -limit, -limit, difference));
  }
};

/// The mean of max(1 - target output, 0) over a row's elements. Targets are 1 for yes, -1 or 0 for no, in the outputs'
/// shape.
struct Hinge {
  static constexpr std::string_view name = "hinge";

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    const T margin = T{1} - sign(target) * output;
    using detail::select;
    return select(margin < T{0}, T{0}, margin);
  }
  /// Returns the derivative by the output; NaN for NaN.
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    const T margin = T{1} - sign(target) * output;
    using detail::select;
    return select(margin < T{0}, T{0}, select(margin >= T{0}, -sign(target), margin));
  }

 private:
  template <class T>
  [[nodiscard]] static DIST_HD T sign(T target) {
    using detail::select;
    return select(target == T{0}, T{-1}, target);
  }
};

/// The mean over a row's elements of log(cosh(output - target)): like half the squared difference d where it is small,
/// and like |d| - log 2 where it is large. Targets have the outputs' shape.
struct LogCosh {
  static constexpr std::string_view name = "log_cosh";

  /// Returns |d| + log((1 + exp(-2 |d|)) / 2), which neither overflows nor rounds small losses to 0.
  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    using detail::select;
    using std::expm1;
    using std::log1p;
    const T difference = output - target;
    const T size = select(difference < T{0}, -difference, difference);
    return size + log1p(T(0.5) * expm1(T{-2} * size));
  }
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    using std::tanh;
    return tanh(output - target);
  }
};

/// The mean over a row's elements of output - target log(output + 1e-7), for outputs that are expected counts, such as
/// the outputs of nn::Softplus (Keras' formula: the negative log-likelihood without its constant). Targets have the
/// outputs' shape.
struct Poisson {
  static constexpr std::string_view name = "poisson";

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    using std::log;
    return output - target * log(output + T(1e-7));
  }
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    return T{1} - target / (output + T(1e-7));
  }
};

/// The mean over a row's elements of (log(1 + output) - log(1 + target))^2, with numbers below 1e-7 raised to it, as in
/// Keras. Targets have the outputs' shape.
struct MeanSquaredLogarithmicError {
  static constexpr std::string_view name = "mean_squared_logarithmic_error";

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    const T difference = logarithm(output) - logarithm(target);
    return difference * difference;
  }
  /// Returns the derivative by the output, 0 if the output was raised.
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    using detail::select;
    const T slope = T{2} * (logarithm(output) - logarithm(target)) / (T{1} + output);
    return select(output < T(1e-7), T{0}, slope);
  }

 private:
  template <class T>
  [[nodiscard]] static DIST_HD T logarithm(T number) {
    using detail::select;
    using std::log1p;
    return log1p(select(number < T(1e-7), T(1e-7), number));
  }
};

}  // namespace dist::nn
