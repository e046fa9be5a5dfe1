/// Metrics in programs for XLA: what the rows of a batch add to them.
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
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/auc.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/metrics/precision_recall.hpp>

namespace dist::nn {

/// What a batch adds to a metric in a program.
struct TracedTally {
  hlo::Traced<double> total, count;
};

/// A metric in a program for XLA. The specialisation for a metric has one of three functions, which are called when the
/// metric's `check` has let outputs and targets pass:
///
///   template <hlo::TracedArray Outputs, class Targets>
///   static auto of_rows(const M& measure, Outputs outputs, const Targets& targets);
///   template <hlo::TracedArray Outputs, class Targets>
///   static auto cells_of(const M& measure, Outputs outputs, const Targets& targets);
///   static TracedTally tally(const M& measure, hlo::Traced<std::int32_t> rows, const auto&... given);
///
/// `of_rows` is for a metric that MeasuresRows: the number of each row, Traced<double, rows>, of outputs [rows, elements] and
/// of targets, a hlo::Traced or a hlo::Dynamic. `cells_of` is for one that CountingMetric: the numbers of the cells into which each
/// row counts, Traced<std::int32_t, rows, count>, -1 for none. `tally` is for others: what they are given, of which the first
/// `rows` rows count.
template <class M>
struct MetricLowering {
  static_assert(
      dist::detail::always_false<M>,
      "this metric is not one for programs: specialise nn::MetricLowering for it, or update it in a function that "
      "is run and not compiled");
};

template <>
struct MetricLowering<SparseCategoricalAccuracy> {
  template <hlo::TracedArray Outputs, class Labels>
  static auto of_rows(const SparseCategoricalAccuracy&, Outputs outputs, const Labels& labels) {
    return (detail::index_of_largest(outputs) == detail::labels_of<Outputs>(labels)).template as<double>();
  }
};

template <>
struct MetricLowering<CategoricalAccuracy> {
  template <hlo::TracedArray Outputs, class Targets>
  static auto of_rows(const CategoricalAccuracy&, Outputs outputs, const Targets& targets) {
    const auto right = detail::index_of_largest(detail::in_shape_of<Outputs>(targets));
    return (detail::index_of_largest(outputs) == right).template as<double>();
  }
};

template <>
struct MetricLowering<BinaryAccuracy> {
  template <hlo::TracedArray Outputs, class Targets>
  static auto of_rows(const BinaryAccuracy& measure, Outputs outputs, const Targets& targets) {
    using T = typename Outputs::Element;
    const auto wanted = detail::in_shape_of<Outputs>(targets);
    const auto is_yes = outputs > Outputs{static_cast<T>(measure.threshold)};
    const auto is_right = wanted == is_yes.template as<typename Targets::Element>();
    return hlo::reduce<1>(sum, is_right.template as<double>()) / static_cast<double>(Outputs::extents[1]);
  }
};

namespace detail {

/// As is_in_top, for all rows: 1 or 0.
template <class T, std::size_t Rows, std::size_t Classes>
[[nodiscard]] hlo::Traced<double, Rows> are_in_top(hlo::Traced<T, Rows, Classes> outputs,
                                                   hlo::Traced<std::int32_t, Rows> labels, std::size_t k) {
  using Outputs = hlo::Traced<T, Rows, Classes>;
  const auto own = hlo::reduce<1>(sum, hlo::select(is_at<Classes>(labels), outputs, Outputs{0}));
  const auto above = hlo::reduce<1>(sum, (outputs > along_rows<Outputs>(own)).template as<std::int32_t>());
  const auto most = static_cast<std::int32_t>(k < Classes ? k : Classes);
  return ((labels >= 0) & (own - own == T{0}) & (above < most)).template as<double>();
}

/// As Answers::for_each_bin, for all elements.
template <hlo::TracedArray Outputs, class Targets>
[[nodiscard]] auto cells_of_answers(Outputs outputs, const Targets& targets, float threshold) {
  using Cells = typename Outputs::template With<std::int32_t>;
  const auto wanted = in_shape_of<Outputs>(targets);
  const Cells is_yes =
      (outputs > Outputs{static_cast<typename Outputs::Element>(threshold)}).template as<std::int32_t>();
  return Cells{2} * (wanted != decltype(wanted){0}).template as<std::int32_t>() + is_yes;
}

}  // namespace detail

template <>
struct MetricLowering<SparseTopKCategoricalAccuracy> {
  template <hlo::TracedArray Outputs, class Labels>
  static auto of_rows(const SparseTopKCategoricalAccuracy& measure, Outputs outputs, const Labels& labels) {
    return detail::are_in_top(outputs, detail::labels_of<Outputs>(labels), measure.k);
  }
};

template <>
struct MetricLowering<TopKCategoricalAccuracy> {
  template <hlo::TracedArray Outputs, class Targets>
  static auto of_rows(const TopKCategoricalAccuracy& measure, Outputs outputs, const Targets& targets) {
    return detail::are_in_top(outputs, detail::index_of_largest(detail::in_shape_of<Outputs>(targets)), measure.k);
  }
};

/// Metrics of yes and no.
template <class M>
  requires(std::same_as<M, Precision> || std::same_as<M, Recall> || std::same_as<M, F1>)
struct MetricLowering<M> {
  template <hlo::TracedArray Outputs, class Targets>
  static auto cells_of(const M& measure, Outputs outputs, const Targets& targets) {
    return detail::cells_of_answers(outputs, targets, measure.threshold);
  }
};

template <>
struct MetricLowering<Auc> {
  template <hlo::TracedArray Outputs, class Targets>
  static auto cells_of(const Auc& measure, Outputs outputs, const Targets& targets) {
    using T = typename Outputs::Element;
    using Cells = typename Outputs::template With<std::int32_t>;
    const auto thresholds = static_cast<std::int32_t>(measure.thresholds);
    const Outputs p = measure.from_logits ? Outputs{1} / (Outputs{1} + exp(-outputs)) : outputs;
    // As Auc's bucket: NaN is above no threshold but the least.
    const Outputs place = -floor(-p * Outputs{static_cast<T>(measure.thresholds - 1)}) - Outputs{1};
    const Outputs last{static_cast<T>(measure.thresholds - 2)};
    const Outputs bucket =
        hlo::select(p >= Outputs{1}, last, hlo::select((p > Outputs{0}) & (place > Outputs{0}), place, Outputs{0}));
    const auto wanted = detail::in_shape_of<Outputs>(targets);
    return hlo::select(wanted != decltype(wanted){0}, Cells{thresholds}, Cells{0}) + bucket.template as<std::int32_t>();
  }
};

template <>
struct MetricLowering<ConfusionMatrix> {
  template <hlo::TracedArray Outputs, class Labels>
  static auto cells_of(const ConfusionMatrix&, Outputs outputs, const Labels& labels) {
    constexpr std::size_t rows = Outputs::extents[0];
    using PerRow = hlo::Traced<std::int32_t, rows>;
    const PerRow label = detail::labels_of<Outputs>(labels);
    const PerRow cell = label * PerRow{std::int32_t{Outputs::extents[1]}} + detail::index_of_largest(outputs);
    return hlo::reshape<rows, 1>(hlo::select(label < 0, PerRow{-1}, cell));
  }
};

namespace detail {

/// The weight of each row that counts, and 0 of the others. Throws ShapeMismatch.
template <hlo::TracedArray Outputs, class Weights>
[[nodiscard]] auto counted_weights(std::string_view reader, hlo::Traced<std::int32_t> rows, const Outputs& outputs,
                                   const Weights& sample_weight) {
  using PerRow = hlo::Traced<double, Outputs::extents[0]>;
  PerRow weights{1};
  if constexpr (!std::same_as<Weights, Unweighted>) weights = traced_weights<PerRow>(reader, sample_weight, outputs);
  return PerRow{hlo::select(first_rows<Outputs::extents[0]>(rows), weights, PerRow{0})};
}

template <class M, class Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] TracedTally tally_of_rows(const M& measure, hlo::Traced<std::int32_t> rows, const Outputs& outputs,
                                        const Targets& targets, const Weights& sample_weight = {}) {
  if constexpr (require_arrays_in_program<M, Outputs, Targets>()) {
    check_rows(measure, measure.name, shape_only(outputs), shape_only(targets));
    const auto weights = counted_weights(measure.name, rows, outputs, sample_weight);
    const auto numbers = MetricLowering<M>::of_rows(measure, in_shape_of<MatrixOf<Outputs>>(outputs), targets);
    return {hlo::reduce(sum, numbers * weights), hlo::reduce(sum, weights)};
  } else {
    return dist::detail::refused<TracedTally>();
  }
}

/// The sums of the weights of the rows that count into each cell, in an array of this shape.
template <std::size_t Rows, std::size_t Count>
[[nodiscard]] hlo::Dynamic<double> counts_of_cells(hlo::Traced<std::int32_t, Rows, Count> cells,
                                                   hlo::Traced<double, Rows> weights, const Shape& shape) {
  namespace untyped = hlo::untyped;
  const std::size_t numbers = untyped::type_of(cells.value()).shape.elements();
  const Shape all{numbers, shape.elements()};
  const auto for_each_bin = [&](hlo::Value of_number) {
    return untyped::broadcast(untyped::reshape(of_number, Shape{numbers}), all, {0});
  };
  const hlo::Value is_cell =
      untyped::compare("EQ", for_each_bin(cells.value()), untyped::iota({hlo::element_kind<std::int32_t>, all}, 1));
  const hlo::Value weight = for_each_bin(hlo::broadcast<hlo::Traced<double, Rows, Count>, 0>(weights).value());
  const hlo::Value zeros = untyped::constant({hlo::element_kind<double>, all}, 0);
  const hlo::Value counts = untyped::reduce("add", untyped::select(is_cell, weight, zeros), hlo::literal(0.0), {0});
  return hlo::Dynamic<double>{untyped::reshape(counts, shape)};
}

}  // namespace detail

template <class L>
struct MetricLowering<MeanOf<L>> {
  template <class Outputs, class Targets, class Weights = Unweighted>
  static TracedTally tally(const MeanOf<L>& measure, hlo::Traced<std::int32_t> rows, const Outputs& outputs,
                           const Targets& targets, const Weights& sample_weight = {}) {
    const auto losses = traced_losses(measure.loss, rows, outputs, targets, sample_weight);
    return {hlo::reduce(sum, losses.template as<double>()),
            hlo::reduce(sum, detail::counted_weights(measure.name, rows, outputs, sample_weight))};
  }
};

/// Of numbers of the host or of the program; of a Traced one, its `value()` too, as of an nn::Loss.
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

/// What nn::Metric adds to its tally in a step that is traced. Throws ShapeMismatch.
template <class M, class... Given>
[[nodiscard]] TracedTally traced_tally(MetricInTrace, const M& measure, const InTrace auto& replica,
                                       const Given&... given) {
  if constexpr (MeasuresRows<M>)
    return detail::tally_of_rows(measure, replica.rows(), given...);
  else
    return MetricLowering<M>::tally(measure, replica.rows(), given...);
}

/// What nn::Metric adds to its counts in a step that is traced, in the measure's shape. Throws ShapeMismatch, and what the
/// measure's `check` throws.
template <class M, class Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] hlo::Dynamic<double> traced_counts(MetricInTrace, const M& measure, const InTrace auto& replica,
                                                 const Outputs& outputs, const Targets& targets,
                                                 const Weights& sample_weight = {}) {
  if constexpr (detail::require_arrays_in_program<M, Outputs, Targets>()) {
    detail::check_rows(measure, measure.name, detail::shape_only(outputs), detail::shape_only(targets));
    const auto matrix = detail::in_shape_of<detail::MatrixOf<Outputs>>(outputs);
    const auto cells = MetricLowering<M>::cells_of(measure, matrix, targets);
    const auto weights = detail::counted_weights(measure.name, replica.rows(), outputs, sample_weight);
    return detail::counts_of_cells(cells, weights, measure.shape());
  } else {
    return dist::detail::refused<hlo::Dynamic<double>>();
  }
}

}  // namespace dist::nn
