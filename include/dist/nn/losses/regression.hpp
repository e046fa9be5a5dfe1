#pragma once

#include <concepts>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

/// The mean over a row's elements of |output - target|, with slope 0 where they are equal. Targets have the outputs' shape.
struct MeanAbsoluteError {
  static constexpr std::string_view name = "mean_absolute_error";

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    const T difference = output - target;
    using detail::select;
    return select(difference < T{0}, -difference, difference);
  }
  /// The sign of the difference, NaN for NaN.
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    const T difference = output - target;
    using detail::select;
    return select(difference > T{0}, T{1}, select(difference < T{0}, T{-1}, difference));
  }
};

/// The mean over a row's elements of (output - target)^2. Targets have the outputs' rows and elements per
/// row.
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

/// The loss of this replica's rows of a global batch, in a training loop of your own (spec P01, P04): writes
/// the gradient to `outputs.gradient`; `strategy.reduce(dist::sum, …)` of the replicas' `value()` is the mean
/// over the global batch. `sample_weight`, one number per row, weighs the rows.
template <DifferentiableOutputs Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] auto mean_squared_error(const InReplica auto& replica, const Outputs& outputs, const Targets& targets,
                                      GlobalBatchSize global_batch, const Weights& sample_weight = {}) {
  return compute_loss(MeanSquaredError{}, replica, outputs, targets, global_batch, sample_weight);
}
/// The same in a step that is traced: a traced number.
template <class Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] auto mean_squared_error(const InTrace auto& replica, const Outputs& outputs, const Targets& targets,
                                      GlobalBatchSize global_batch, const Weights& sample_weight = {}) {
  return compute_loss(MeanSquaredError{}, replica, outputs, targets, global_batch, sample_weight);
}

/// The mean over a row's elements of d^2 / 2 where the difference |d| of output and target is at most `delta`, and of
/// delta |d| - delta^2 / 2 elsewhere (Huber: "Robust estimation of a location parameter", 1964). Targets have the outputs'
/// shape.
struct Huber {
  static constexpr std::string_view name = "huber";

  float delta = 1;

  /// Throws ShapeMismatch, and InvalidArgument for a delta that is not above 0.
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

/// The mean over a row's elements of max(1 - target output, 0). Targets are 1 for yes, and -1 or 0 for no; they have the
/// outputs' shape.
struct Hinge {
  static constexpr std::string_view name = "hinge";

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    const T margin = T{1} - sign(target) * output;
    using detail::select;
    return select(margin < T{0}, T{0}, margin);
  }
  /// NaN for NaN.
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
