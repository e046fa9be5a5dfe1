/// Metrics in programs for XLA: the contributions of a batch's rows.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <dist/context/in_trace.hpp>
#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/hlo/rows.hpp>
#include <dist/nn/hlo/traced_loss.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/cell_counts.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/metrics/row_metric.hpp>

namespace dist::nn {

/// A batch's contribution to a metric.
struct TracedTally {
  /// The sum of the measured values.
  hlo::Traced<double> total, count;  ///< sum of the weights
};

namespace detail {

/// A metric with a formula for rows that is a template over their types.
template <class M, class Outputs, class Targets>
concept MeasuresTracedRows = requires(const M measure, Outputs outputs, Targets targets) {
  { measure.of_row(outputs, targets) } -> std::convertible_to<PerExample<double, typename Outputs::Element>>;
};
/// Receives the indices of the bins that each example of `Examples` increments.
template <hlo::TracedArray Examples>
struct TakeBins {
  hlo::Value& bins;  // -1 for none
  void operator()(typename Examples::template With<std::int32_t> of_elements) const { bins = of_elements.value(); }
  template <class Column>
  void one_of(PerExample<std::int32_t, Examples> line, std::size_t columns, const Column& column) const {
    using Bins = PerExample<std::int32_t, Examples>;
    const Bins bin = line * Bins{static_cast<std::int32_t>(columns)} + column();
    bins = hlo::select(line < 0, Bins{-1}, bin).value();
  }
};
/// A counting metric whose bins are a template over the types of rows.
template <class M, class Outputs, class Targets>
concept CountsTracedRows = requires(const M measure, Outputs outputs, Targets targets,
                                    TakeBins<typename Outputs::Element> take) {
  measure.for_each_bin(outputs, targets, take);
};

}  // namespace detail

/// A metric in a program for XLA. A metric whose formula is a template over the types of rows needs no
/// specialisation. A metric whose targets are class indices declares `static constexpr bool takes_labels = true`. For
/// other metrics, specialise this template with one of three functions, which run after the metric's `check`:
///
///   template <hlo::TracedArray Outputs, class Targets>
///   static auto of_rows(const M& measure, Outputs outputs, const Targets& targets);
///   template <hlo::TracedArray Outputs, class Targets>
///   static hlo::Value bins_of(const M& measure, Outputs outputs, const Targets& targets);
///   static TracedTally tally(const M& measure, hlo::Traced<std::int32_t> rows, const auto&... given);
///
/// `of_rows`, for a metric that MeasuresRows, returns one number per row, `Traced<double, rows>`, for outputs [rows,
/// elements] and targets, an hlo::Traced or an hlo::Dynamic. `bins_of`, for a CountingMetric, returns the indices of
/// the bins that each row increments, std::int32_t [rows] or [rows, count], -1 for none. A metric along the last axis
/// also gets outputs [rows, positions, classes], and then returns numbers or bins [rows, positions]. `tally`, for
/// other metrics, takes their arguments; the first `rows` rows are valid.
template <class M>
struct MetricLowering {
  template <hlo::TracedArray Outputs, class Targets>
  static detail::PerExample<double, Outputs> of_rows(const M& measure, Outputs outputs, const Targets& targets) {
    const detail::TracedRow row{outputs};
    const auto target = detail::traced_targets<M, Outputs>(targets);
    if constexpr (require<detail::MeasuresTracedRows<M, decltype(row), decltype(target)>>())
      return measure.of_row(row, target);
    else
      return 0;
  }
  template <hlo::TracedArray Outputs, class Targets>
  static hlo::Value bins_of(const M& measure, Outputs outputs, const Targets& targets) {
    const detail::TracedRow row{outputs};
    const auto target = detail::traced_targets<M, Outputs>(targets);
    hlo::Value bins{};
    if constexpr (require<detail::CountsTracedRows<M, decltype(row), decltype(target)>>())
      measure.for_each_bin(row, target, detail::TakeBins<Outputs>{bins});
    return bins;
  }
  static TracedTally tally(const M&, const auto&...) {
    require<false>();
    return dist::detail::refused<TracedTally>();
  }

 private:
  template <bool is_traced>
  static constexpr bool require() {
    static_assert(
        is_traced,
        "this metric cannot be used in XLA programs: make its of_row or for_each_bin a template of the row types, "
        "specialise nn::MetricLowering for it, or update it in a replica function that is not compiled");
    return is_traced;
  }
};

namespace detail {

/// The weight of each example of a loss or metric; 0 if it does not count. Throws ShapeMismatch.
template <class M, hlo::TracedArray Outputs, class Targets, class Weights>
[[nodiscard]] auto counted_weights(const M& measure, hlo::Traced<std::int32_t> rows, const Outputs& outputs,
                                   const Targets& targets, const Weights& sample_weight) {
  using Examples = ExamplesOf<M, Outputs>;
  using Numbers = PerExample<double, Examples>;
  Numbers weights{1};
  if constexpr (!std::same_as<Weights, Unweighted>)
    weights = traced_weights<M, double, Examples>(measure.name, sample_weight, outputs);
  return Numbers{hlo::select(examples_that_count<Examples>(measure, rows, targets), weights, Numbers{0})};
}

template <class M, class Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] TracedTally tally_of_rows(const M& measure, hlo::Traced<std::int32_t> rows, const Outputs& outputs,
                                        const Targets& targets, const Weights& sample_weight = {}) {
  if constexpr (require_arrays_in_program<M, Outputs, Targets>()) {
    static_cast<void>(examples_of(measure, measure.name, shape_only(outputs), shape_only(targets)));
    const auto weights = counted_weights(measure, rows, outputs, targets, sample_weight);
    const auto numbers = MetricLowering<M>::of_rows(measure, in_shape_of<ExamplesOf<M, Outputs>>(outputs), targets);
    return {hlo::reduce(sum, numbers * weights), hlo::reduce(sum, weights)};
  } else {
    return dist::detail::refused<TracedTally>();
  }
}

/// The sums of the weights of the examples in each bin. Bins start with the axes of the weights.
template <hlo::TracedArray Weights>
[[nodiscard]] hlo::Dynamic<double> counts_of_bins(hlo::Value bins, Weights weights, const Shape& shape) {
  namespace untyped = hlo::untyped;
  const Shape numbered = untyped::type_of(bins).shape;
  const std::size_t numbers = numbered.elements();
  const Shape all{numbers, shape.elements()};
  const auto for_each_bin = [&](hlo::Value of_number) {
    return untyped::broadcast(untyped::reshape(of_number, Shape{numbers}), all, {0});
  };
  const hlo::Value is_bin =
      untyped::compare("EQ", for_each_bin(bins), untyped::iota({hlo::element_kind<std::int32_t>, all}, 1));
  untyped::Axes axes(Weights::rank);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = axis;
  const hlo::Value weight = for_each_bin(untyped::broadcast(weights.value(), numbered, axes));
  const hlo::Value zeros = untyped::constant({hlo::element_kind<double>, all}, 0);
  const hlo::Value counts = untyped::reduce("add", untyped::select(is_bin, weight, zeros), hlo::literal(0.0), {0});
  return hlo::Dynamic<double>{untyped::reshape(counts, shape)};
}

}  // namespace detail

/// The lowering of nn::MeanOf.
template <class L>
struct MetricLowering<MeanOf<L>> {
  template <class Outputs, class Targets, class Weights = Unweighted>
  static TracedTally tally(const MeanOf<L>& measure, hlo::Traced<std::int32_t> rows, const Outputs& outputs,
                           const Targets& targets, const Weights& sample_weight = {}) {
    const auto losses = traced_losses(measure.loss, rows, outputs, targets, sample_weight);
    return {hlo::reduce(sum, losses.template as<double>()),
            hlo::reduce(sum, detail::counted_weights(measure.loss, rows, outputs, targets, sample_weight))};
  }
};

/// The lowering of nn::MeanValue, for numbers of the host, an hlo::Traced or its `value()`, like the `value()` of an
/// nn::Loss.
template <>
struct MetricLowering<MeanValue> {
  template <class Number, class Weight = double>
  static TracedTally tally(const MeanValue&, const hlo::Traced<std::int32_t>&, const Number& number,
                           const Weight& weight = 1) {
    const hlo::Traced<double> of = of_program(weight);
    return {of_program(number) * of, of};
  }

 private:
  static hlo::Traced<double> of_program(hlo::Value number) {
    return hlo::Traced<double>{hlo::untyped::convert(number, hlo::element_kind<double>)};
  }
  template <class T>
  static hlo::Traced<double> of_program(hlo::Traced<T> number) {
    return number.template as<double>();
  }
  static hlo::Traced<double> of_program(double number) { return number; }
};

/// Returns a batch's contribution to the tally of nn::Metric. Throws ShapeMismatch.
template <class M, class... Given>
[[nodiscard]] TracedTally traced_tally(MetricInTrace, const M& measure, const InTrace auto& replica,
                                       const Given&... given) {
  if constexpr (MeasuresRows<M>)
    return detail::tally_of_rows(measure, replica.rows(), given...);
  else
    return MetricLowering<M>::tally(measure, replica.rows(), given...);
}

/// Returns a batch's contribution to the counts of nn::Metric, in the measure's shape. Throws ShapeMismatch, and the
/// errors of the measure's `check`.
template <class M, class Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] hlo::Dynamic<double> traced_counts(MetricInTrace, const M& measure, const InTrace auto& replica,
                                                 const Outputs& outputs, const Targets& targets,
                                                 const Weights& sample_weight = {}) {
  if constexpr (detail::require_arrays_in_program<M, Outputs, Targets>()) {
    static_cast<void>(
        detail::examples_of(measure, measure.name, detail::shape_only(outputs), detail::shape_only(targets)));
    const auto examples = detail::in_shape_of<detail::ExamplesOf<M, Outputs>>(outputs);
    const hlo::Value bins = MetricLowering<M>::bins_of(measure, examples, targets);
    const auto weights = detail::counted_weights(measure, replica.rows(), outputs, targets, sample_weight);
    return detail::counts_of_bins(bins, weights, measure.shape());
  } else {
    return dist::detail::refused<hlo::Dynamic<double>>();
  }
}

}  // namespace dist::nn
