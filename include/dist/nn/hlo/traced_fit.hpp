/// What nn::Model computes in steps that are traced, besides what its network, loss, metrics and optimizer do.
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

/// The losses of a replica's rows, of which `rows` count.
template <class T>
struct TracedFitLoss {
  hlo::Traced<T> learned;     ///< what the network learns from: summed over the replicas, their mean or their sum
  hlo::Traced<double> shown;  ///< what the logs show, where batches and replicas weigh as many as their rows
  hlo::Traced<double> rows;
};

template <bool is_sum, class L, class Outputs, class Targets, class Weights>
[[nodiscard]] auto traced_fit_loss(FitInTrace, std::bool_constant<is_sum>, const L& loss, const InTrace auto& replica,
                                   const Outputs& outputs, const Targets& targets, const Weights& weights) {
  const auto total = hlo::reduce(sum, traced_losses(loss, replica.rows(), outputs, targets, weights));
  using T = typename std::remove_const_t<decltype(total)>::Element;
  const auto replicas = static_cast<double>(replica.num_replicas_in_sync());
  const auto rows = replica.rows().template as<double>();
  const hlo::Traced<double> divisor = hlo::max(rows, 1.0);  // a replica may have none
  if constexpr (is_sum)
    return TracedFitLoss<T>{total, total.template as<double>() * replicas, rows};
  else
    return TracedFitLoss<T>{total / (divisor * replicas).template as<T>(), total.template as<double>() / divisor, rows};
}

/// The weights of a batch's rows by their classes, times the sample weights where they are `given`. `table()` is a tensor of the
/// weights of so many classes, asked for before each call of the program. NaN for a label that is none of them. Throws
/// ShapeMismatch unless there is one label for each row.
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
