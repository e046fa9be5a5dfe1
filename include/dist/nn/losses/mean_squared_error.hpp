#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

/// The mean over a row's elements of (output - target)^2. Targets have the outputs' rows and elements per
/// row.
struct MeanSquaredError {
  static constexpr std::string_view name = "mean_squared_error";

  /// Throws ShapeMismatch.
  template <std::floating_point T, class Target, dist::Place Where>
  void check(TensorView<const T, Where> outputs, TensorView<const Target, Where> targets) const {
    require_targets(name, outputs, targets, outputs.row_size());
  }

  template <std::floating_point T, class Target>
  [[nodiscard]] T per_example(std::span<const T> outputs, std::span<const Target> targets) const {
    return per_example(row_of(outputs), row_of(targets));
  }
  template <std::floating_point T, class Target>
  [[nodiscard]] DIST_HD T per_example(Row<const T> outputs, Row<const Target> targets) const {
    T squares = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const T difference = outputs[i] - static_cast<T>(targets[i]);
      squares += difference * difference;
    }
    return squares / static_cast<T>(outputs.size());
  }

  /// The gradient is 2 (output - target) / elements * scale.
  template <std::floating_point T, class Target>
  T per_example(std::span<const T> outputs, std::span<const Target> targets, T scale, std::span<T> gradient) const {
    return per_example(row_of(outputs), row_of(targets), scale, row_of(gradient));
  }
  template <std::floating_point T, class Target>
  DIST_HD T per_example(Row<const T> outputs, Row<const Target> targets, T scale, Row<T> gradient) const {
    const T slope = T{2} * scale / static_cast<T>(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) gradient[i] = slope * (outputs[i] - static_cast<T>(targets[i]));
    return per_example(outputs, targets);
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

}  // namespace dist::nn
