/// Losses in programs for XLA: forward only, with gradients derived from the program.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <dist/context/in_trace.hpp>
#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/hlo/rows.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/global_batch_size.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/row_loss.hpp>

namespace dist::nn {

namespace detail {
/// A loss with a formula for rows that is a template over their type.
template <class L, class Outputs, class Targets>
concept LossOfTracedRows = requires(const L loss, Outputs outputs, Targets targets) {
  { loss.per_example(outputs, targets) } -> std::same_as<typename Outputs::Number>;
};
}  // namespace detail

/// A loss in a program for XLA: its formula for elements or rows, with a gradient derived from the program unless the
/// loss has a slope. A loss whose targets are class indices declares `static constexpr bool takes_labels = true`. For
/// other losses, specialise this template with a function
///
///   template <hlo::TracedArray Outputs, class Targets>
///   static auto per_example(const L& loss, Outputs outputs, const Targets& targets);
///
/// that returns each row's loss, `Traced<T, rows>`, for outputs [rows, elements] and targets, an hlo::Traced or an
/// hlo::Dynamic that has passed the loss's `check`. A loss along the last axis also gets outputs [rows, positions,
/// classes], and then returns `Traced<T, rows, positions>`.
template <class L>
struct LossLowering {
  /// NaN, with a NaN gradient, for a label out of range.
  template <hlo::TracedArray Outputs, class Targets>
  static auto per_example(const L& loss, Outputs outputs, const Targets& targets) {
    using T = typename Outputs::Element;
    using PerRow = detail::PerExample<T, Outputs>;
    const detail::TracedRow row{outputs};
    if constexpr (TakesLabels<L>) {
      const auto labels = detail::traced_targets<L, Outputs>(targets);
      const PerRow is_class = hlo::select(class_of(labels) < 0, PerRow{dist::detail::quiet_nan<T>}, PerRow{1});
      return is_class * loss.per_example(row, labels);
    } else {
      const Outputs wanted = detail::in_shape_of<Outputs>(targets).template as<T>();
      constexpr bool is_of_rows = detail::LossOfTracedRows<L, detail::TracedRow<Outputs>, detail::TracedRow<Outputs>>;
      static_assert(
          LossOfElements<L, Outputs, Outputs> || is_of_rows,
          "this loss cannot be used in XLA programs: make its element and slope templates of the number type, an "
          "nn::Real, or its per_example a template of the row types, or specialise nn::LossLowering for it");
      if constexpr (LossOfElements<L, Outputs, Outputs>) {
        const Outputs each = hlo::with_gradient(loss.element(outputs, wanted), outputs,
                                                [=](Outputs of_each) { return of_each * loss.slope(outputs, wanted); });
        return hlo::reduce<Outputs::rank - 1>(sum, each) / static_cast<T>(Outputs::extents[Outputs::rank - 1]);
      } else if constexpr (is_of_rows) {
        return PerRow{loss.per_example(row, detail::TracedRow{wanted})};
      } else {
        return PerRow{0};
      }
    }
  }
};

/// Returns the loss of each example times its sample weight, [rows] or [rows, positions]. It is 0 for padding rows,
/// whatever they contain, and ignored labels. Throws ShapeMismatch, and the errors of the loss's `check`.
template <class L, class Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] auto traced_losses(const L& loss, hlo::Traced<std::int32_t> rows, Outputs outputs, const Targets& targets,
                                 const Weights& sample_weight = {}) {
  if constexpr (detail::require_arrays_in_program<L, Outputs, Targets>()) {
    using T = typename Outputs::Element;
    const hlo::Scope scope{L::name};
    using Examples = detail::ExamplesOf<L, Outputs>;
    using Losses = detail::PerExample<T, Examples>;
    static_cast<void>(detail::examples_of(loss, L::name, detail::shape_only(outputs), detail::shape_only(targets)));
    const auto counts = detail::examples_that_count<Examples>(loss, rows, targets);
    // For examples that do not count, the first select stops NaN gradients, the second NaN losses.
    const Examples counted = hlo::select(detail::along_last_axis<typename Examples::template With<bool>>(counts),
                                         detail::in_shape_of<Examples>(outputs), Examples{0});
    Losses losses = LossLowering<L>::per_example(loss, counted, targets);
    if constexpr (!std::same_as<Weights, Unweighted>)
      losses = losses * detail::traced_weights<L, T, Examples>(L::name, sample_weight, outputs);
    return Losses{hlo::select(counts, losses, Losses{0})};
  } else {
    return dist::detail::refused<hlo::Traced<float, hlo::batch>>();
  }
}

/// The traced counterpart of nn::compute_loss. Throws the errors of traced_losses, and InvalidArgument if a replica
/// may have more examples than the global batch.
template <class L, class Outputs, class Targets, class Weights>
[[nodiscard]] auto traced_loss(const L& loss, const InTrace auto& replica, const Outputs& outputs,
                               const Targets& targets, GlobalBatchSize global_batch, const Weights& sample_weight) {
  const auto losses = traced_losses(loss, replica.rows(), outputs, targets, sample_weight);
  using T = typename std::remove_const_t<decltype(losses)>::Element;
  if (!detail::ignores_labels(loss))
    detail::require_global_batch_size(global_batch, hlo::untyped::type_of(losses.value()).shape.elements(), 0,
                                      replica.num_replicas_in_sync());
  return hlo::reduce(sum, losses) * hlo::Traced<T>{static_cast<T>(1 / static_cast<double>(global_batch.value()))};
}
/// The traced counterpart for a number of nn::count_labels.
template <class L, class Outputs, class Targets, std::same_as<hlo::Traced<std::int32_t>> Count, class Weights>
[[nodiscard]] auto traced_loss(const L& loss, const InTrace auto& replica, const Outputs& outputs,
                               const Targets& targets, Count global_batch, const Weights& sample_weight) {
  const auto losses = traced_losses(loss, replica.rows(), outputs, targets, sample_weight);
  using T = typename std::remove_const_t<decltype(losses)>::Element;
  return hlo::reduce(sum, losses) / hlo::max(global_batch, 1).template as<T>();
}

/// Returns the number of labels of the valid rows of a batch that are not `ignored`.
template <class Labels>
[[nodiscard]] hlo::Traced<std::int32_t> traced_labels_except(LabelsInTrace, const InTrace auto& replica,
                                                             std::int64_t ignored, const Labels& labels) {
  static_assert(dist::detail::satisfied<detail::ArrayInProgram<Labels>>,
                "in a step that is traced, nn::count_labels counts a part of the batch, or a traced array");
  if constexpr (detail::ArrayInProgram<Labels>) {
    namespace untyped = hlo::untyped;
    const Shape shape = untyped::type_of(labels.value()).shape;
    const hlo::Value rows = untyped::broadcast(replica.rows().value(), shape, {});
    const hlo::Value is_valid =
        untyped::compare("LT", untyped::iota({hlo::element_kind<std::int32_t>, shape}, 0), rows);
    const hlo::Value wide = untyped::convert(labels.value(), hlo::element_kind<std::int64_t>);
    const hlo::Value is_counted = untyped::compare(
        "NE", wide, untyped::constant({hlo::element_kind<std::int64_t>, shape}, hlo::literal(ignored)));
    const hlo::Value counts =
        untyped::convert(untyped::bitwise("and", is_valid, is_counted), hlo::element_kind<std::int32_t>);
    untyped::Axes all(shape.rank());
    for (std::size_t axis = 0; axis < all.size(); ++axis) all[axis] = axis;
    return hlo::Traced<std::int32_t>{untyped::reduce("add", counts, hlo::literal(0), all)};
  } else {
    return 0;
  }
}

/// The traced counterpart of nn::Reduced, for nn::Reduction::Sum.
template <class L, class Outputs, class Targets, class Weights>
[[nodiscard]] auto traced_sum_of_losses(const L& loss, const InTrace auto& replica, const Outputs& outputs,
                                        const Targets& targets, const Weights& sample_weight, Reduction::Sum) {
  return hlo::reduce(sum, traced_losses(loss, replica.rows(), outputs, targets, sample_weight));
}

}  // namespace dist::nn
