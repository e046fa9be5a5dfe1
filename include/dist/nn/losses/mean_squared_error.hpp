#pragma once

#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

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

}  // namespace dist::nn
