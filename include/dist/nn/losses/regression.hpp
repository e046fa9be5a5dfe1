#pragma once

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

}  // namespace dist::nn
