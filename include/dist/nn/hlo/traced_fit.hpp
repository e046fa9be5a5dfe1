/// The parts of nn::Model in traced steps, except its network, loss, metrics and optimizer.
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include <dist/context/in_trace.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/indexing.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/rows.hpp>
#include <dist/nn/hlo/traced_loss.hpp>
#include <dist/nn/losses/reduced.hpp>

namespace dist::nn {

/// The sum of a replica's losses over its valid rows.
template <bool is_sum, class T>
struct TracedFitLoss {
  hlo::Traced<T> total;      ///< sum of the losses
  hlo::Traced<double> rows;  ///< number of valid rows

  /// The loss to differentiate; over all replicas it adds up to the sum or mean of the step's losses.
  [[nodiscard]] hlo::Traced<T> learned(const InTrace auto& replica) const {
    if constexpr (is_sum)
      return total;
    else
      return total / hlo::max(rows_of_step(replica), 1.0).template as<T>();
  }
  /// The loss for the logs, to be weighted by `rows`.
  [[nodiscard]] hlo::Traced<double> shown(const InTrace auto& replica) const {
    const hlo::Traced<double> mean = total.template as<double>() / hlo::max(rows, 1.0);  // a replica may have no rows
    if constexpr (is_sum)
      return mean * rows_of_step(replica);
    else
      return mean;
  }

 private:
  [[nodiscard]] static hlo::Traced<double> rows_of_step(const InTrace auto& replica) {
    return replica.all_reduce(sum, replica.rows()).template as<double>();
  }
};

/// Computes the TracedFitLoss of a batch.
template <bool is_sum, class L, class Outputs, class Targets, class Weights>
[[nodiscard]] auto traced_fit_loss(FitInTrace, std::bool_constant<is_sum>, const L& loss, const InTrace auto& replica,
                                   const Outputs& outputs, const Targets& targets, const Weights& weights) {
  const auto total = hlo::reduce(sum, traced_losses(loss, replica.rows(), outputs, targets, weights));
  using T = typename std::remove_const_t<decltype(total)>::Element;
  return TracedFitLoss<is_sum, T>{total, replica.rows().template as<double>()};
}

/// Returns each row's class weight, times the sample weights if `given`; NaN if a label is out of range. `table()`
/// returns a tensor of `classes` weights before each run of the program. Throws ShapeMismatch unless there is one
/// label per row.
template <class Outputs, class Labels, class Table>
[[nodiscard]] auto traced_class_weights(FitInTrace, const InTrace auto& replica, const Outputs& outputs,
                                        const Labels& labels, std::size_t classes, Table table, const auto&... given) {
  using PerRow = hlo::Traced<float, Outputs::extents[0]>;
  const hlo::Dynamic<float> weights = replica.host_numbers(Shape{classes}, std::move(table));
  static_cast<void>(detail::row_weights("class_weight", detail::shape_only(labels), detail::shape_only(outputs)));
  const auto label = detail::classes_of(detail::in_shape_of<PerRow>(labels), classes);
  const PerRow of_classes{hlo::untyped::take(weights.value(), label.value())};
  const PerRow of_rows = hlo::select(label < 0, PerRow{std::numeric_limits<float>::quiet_NaN()}, of_classes);
  return PerRow{(of_rows * ... * detail::traced_weights<PerRow>("fit", given, outputs))};
}

}  // namespace dist::nn
