/// The parts of nn::Model in traced steps, except its network, loss, metrics and optimizer.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// The sum of a replica's losses over the examples that count, and their number.
template <bool is_sum, class T>
struct TracedFitLoss {
  hlo::Traced<T> total;                ///< sum of the losses
  hlo::Traced<std::int32_t> examples;  ///< number of examples that count

  /// The loss to differentiate; over all replicas it adds up to the sum or mean of the step's losses.
  [[nodiscard]] hlo::Traced<T> learned(const InTrace auto& replica) const {
    if constexpr (is_sum)
      return total;
    else
      return total / hlo::max(examples_of_step(replica), 1.0).template as<T>();
  }
  /// The loss for the logs, to be weighted by `examples`.
  [[nodiscard]] hlo::Traced<double> shown(const InTrace auto& replica) const {
    // A replica may have no examples.
    const auto mean = total.template as<double>() / hlo::max(examples.template as<double>(), 1.0);
    if constexpr (is_sum)
      return mean * examples_of_step(replica);
    else
      return mean;
  }

 private:
  [[nodiscard]] hlo::Traced<double> examples_of_step(const InTrace auto& replica) const {
    return replica.all_reduce(sum, examples).template as<double>();
  }
};

/// Computes the TracedFitLoss of a batch.
template <bool is_sum, class L, class Outputs, class Targets, class Weights>
[[nodiscard]] auto traced_fit_loss(FitInTrace, std::bool_constant<is_sum>, const L& loss, const InTrace auto& replica,
                                   const Outputs& outputs, const Targets& targets, const Weights& weights) {
  const auto losses = traced_losses(loss, replica.rows(), outputs, targets, weights);
  using T = typename std::remove_const_t<decltype(losses)>::Element;
  constexpr bool is_of_rows = decltype(losses)::rank == 1;
  hlo::Traced<std::int32_t> examples = replica.rows();
  if (!is_of_rows || detail::ignores_labels(loss)) {
    using Examples = detail::ExamplesOf<L, Outputs>;
    const auto counts = detail::examples_that_count<Examples>(loss, replica.rows(), targets);
    examples = hlo::reduce(sum, counts.template as<std::int32_t>());
  }
  return TracedFitLoss<is_sum, T>{hlo::reduce(sum, losses), examples};
}

namespace detail {

/// The class of each example of `Examples`, from labels, or from one-hot rows; -1 for another row, and for a label out
/// of range. Throws ShapeMismatch for other shapes.
template <hlo::TracedArray Examples, class Outputs, class Targets>
[[nodiscard]] auto classes_of_targets(const Outputs& outputs, const Targets& targets, std::size_t classes) {
  using Classes = PerExample<std::int32_t, Examples>;
  const Shape of_outputs = shape_only(outputs).shape(), of_targets = shape_only(targets).shape();
  if (are_labels(of_outputs, of_targets)) return classes_of(in_shape_of<Classes>(targets), classes);
  if (of_targets.elements() != of_outputs.elements()) refuse_labels("class_weight", of_outputs, of_targets);
  const auto rows = in_shape_of<Examples>(targets).template as<std::int32_t>();
  constexpr std::size_t axis = Examples::rank - 1;
  const Classes ones = hlo::reduce<axis>(sum, (rows == 1).template as<std::int32_t>());
  const Classes others = hlo::reduce<axis>(sum, (rows != 0).template as<std::int32_t>());
  const Classes known = classes_of(index_of_largest(rows), classes);
  return Classes{hlo::select((ones == 1) & (others == 1), known, Classes{-1})};
}

}  // namespace detail

/// Returns the class weight of each example of a loss, times the sample weights if `given`; NaN for a class out of
/// range. `table()` returns a tensor of `classes` weights before each run of the program. Throws ShapeMismatch unless
/// the targets are labels, or rows of the outputs' shape.
template <class L, class Outputs, class Targets, class Table>
[[nodiscard]] auto traced_class_weights(FitInTrace, const L&, const InTrace auto& replica, const Outputs& outputs,
                                        const Targets& targets, std::size_t classes, Table table,
                                        const auto&... given) {
  using Examples = detail::ExamplesOf<L, Outputs>;
  using Weights = detail::PerExample<float, Examples>;
  const hlo::Dynamic<float> weights = replica.host_numbers(Shape{classes}, std::move(table));
  const auto label = detail::classes_of_targets<Examples>(outputs, targets, classes);
  const Weights of_classes{hlo::untyped::take(weights.value(), label.value())};
  const Weights of_examples = hlo::select(label < 0, Weights{std::numeric_limits<float>::quiet_NaN()}, of_classes);
  return Weights{(of_examples * ... * detail::traced_weights<L, float, Examples>("fit", given, outputs))};
}

}  // namespace dist::nn
