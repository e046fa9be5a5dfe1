/// Losses in programs for XLA: written forward, as their gradients follow from the program.
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
#include <dist/nn/choice.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/hlo/rows.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/categorical_crossentropy.hpp>
#include <dist/nn/losses/cosine_similarity.hpp>
#include <dist/nn/losses/crossentropy_of_row.hpp>
#include <dist/nn/losses/global_batch_size.hpp>
#include <dist/nn/losses/kl_divergence.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/row_loss.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>

namespace dist::nn {

namespace detail {

/// As crossentropy_of_logits, for all rows of logits and of the classes' parts of the right answer.
template <hlo::TracedArray Logits>
[[nodiscard]] auto crossentropy_of_logits(Logits logits, Logits parts) {
  const auto largest = hlo::stop_gradient(hlo::reduce<1>(max, logits));
  const Logits below = along_rows<Logits>(largest) - logits;
  const auto is_top = is_at<Logits::extents[1]>(index_of_largest(logits));
  const auto others = hlo::reduce<1>(sum, hlo::select(is_top, expm1(-below), exp(-below)));
  // A class without a part may have a logit of -infinity.
  const auto distance = hlo::reduce<1>(sum, hlo::select(parts == Logits{0}, Logits{0}, parts * below));
  return distance + hlo::reduce<1>(sum, parts) * log1p(others);
}

}  // namespace detail

/// A loss in a program for XLA. The specialisation for a loss of rows has the function
///
///   template <hlo::TracedArray Outputs, class Targets>
///   static auto per_example(const L& loss, Outputs outputs, const Targets& targets);
///
/// which returns the loss of each row, Traced<T, rows>, of outputs [rows, elements] and of targets that the loss's `check` has
/// let pass: a hlo::Traced or a hlo::Dynamic. Losses of elements need none: their functions are called with all elements at
/// once, and their slope is the gradient.
template <class L>
struct LossLowering {
  template <hlo::TracedArray Outputs, class Targets>
  static auto per_example(const L& loss, Outputs outputs, const Targets& targets) {
    using T = typename Outputs::Element;
    constexpr bool is_of_elements = LossOfElements<L, Outputs, Outputs>;
    static_assert(
        is_of_elements,
        "this loss is not one for programs: give it templates of element and slope over their number type, an "
        "nn::Real, or specialise nn::LossLowering for it");
    if constexpr (is_of_elements) {
      const Outputs wanted = detail::in_shape_of<Outputs>(targets).template as<T>();
      const Outputs each = hlo::with_gradient(loss.element(outputs, wanted), outputs,
                                              [=](Outputs of_each) { return of_each * loss.slope(outputs, wanted); });
      constexpr auto elements = static_cast<T>(Outputs::extents[1]);
      return hlo::reduce<1>(sum, each) / elements;
    } else {
      return hlo::Traced<T, Outputs::extents[0]>{0};
    }
  }
};

template <>
struct LossLowering<SparseCategoricalCrossentropy> {
  /// NaN, and with a gradient of NaN, for a label that is no class.
  template <hlo::TracedArray Outputs, class Labels>
  static auto per_example(const SparseCategoricalCrossentropy& loss, Outputs outputs, const Labels& labels) {
    using T = typename Outputs::Element;
    constexpr std::size_t rows = Outputs::extents[0];
    constexpr std::size_t classes = Outputs::extents[1];
    using PerRow = hlo::Traced<T, rows>;
    const auto label = detail::labels_of<Outputs>(labels);
    const detail::SmoothedLabel<T> smoothed{0, classes, loss.label_smoothing};
    const Outputs parts = hlo::select(detail::is_at<classes>(label), Outputs{smoothed.right}, Outputs{smoothed.others});
    const PerRow is_class = hlo::select(label < 0, PerRow{dist::detail::quiet_nan<T>}, PerRow{1});
    if (loss.from_logits) return is_class * detail::crossentropy_of_logits(outputs, parts);
    const Outputs p = detail::clipped_probability(outputs);
    return is_class * (log(hlo::reduce<1>(sum, p)) - hlo::reduce<1>(sum, parts * log(p)));
  }
};

template <>
struct LossLowering<CategoricalCrossentropy> {
  template <hlo::TracedArray Outputs, class Targets>
  static auto per_example(const CategoricalCrossentropy& loss, Outputs outputs, const Targets& targets) {
    using T = typename Outputs::Element;
    const T smoothing = static_cast<T>(loss.label_smoothing);
    const Outputs parts = detail::in_shape_of<Outputs>(targets).template as<T>() * Outputs{T{1} - smoothing} +
                          Outputs{smoothing / static_cast<T>(Outputs::extents[1])};
    if (loss.from_logits) return detail::crossentropy_of_logits(outputs, parts);
    const Outputs p = outputs / detail::along_rows<Outputs>(hlo::reduce<1>(sum, outputs));
    return -hlo::reduce<1>(sum, parts * log(detail::clipped_probability(p)));
  }
};

template <>
struct LossLowering<KlDivergence> {
  template <hlo::TracedArray Outputs, class Targets>
  static auto per_example(const KlDivergence&, Outputs outputs, const Targets& targets) {
    const Outputs target =
        KlDivergence::clipped(detail::in_shape_of<Outputs>(targets).template as<typename Outputs::Element>());
    return hlo::reduce<1>(sum, target * log(target / KlDivergence::clipped(outputs)));
  }
};

template <>
struct LossLowering<CosineSimilarity> {
  template <hlo::TracedArray Outputs, class Targets>
  static auto per_example(const CosineSimilarity&, Outputs outputs, const Targets& targets) {
    const Outputs target = detail::in_shape_of<Outputs>(targets).template as<typename Outputs::Element>();
    const auto both = hlo::reduce<1>(sum, outputs * target);
    return -(both / norm(target)) / norm(outputs);
  }

 private:
  /// At least 1e-7; smaller ones have no gradient.
  template <hlo::TracedArray Matrix>
  static auto norm(Matrix x) {
    using T = typename Matrix::Element;
    const auto squares = hlo::reduce<1>(sum, x * x);
    using PerRow = decltype(squares);
    const auto is_small = sqrt(squares) < T(1e-7);
    // Of a number that has a root with a slope: that of 0 has none, and would make the gradient NaN.
    const auto root = sqrt(hlo::select(is_small, std::remove_const_t<PerRow>{1}, squares));
    return hlo::select(is_small, std::remove_const_t<PerRow>{T(1e-7)}, root);
  }
};

/// The losses of the rows that count, each times its sample weight, and 0 for the others, which may be anything: a loss
/// without reduction in the program that is traced. `rows` says how many count. Throws ShapeMismatch, and what the loss's
/// `check` throws.
template <class L, class Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] auto traced_losses(const L& loss, hlo::Traced<std::int32_t> rows, Outputs outputs, const Targets& targets,
                                 const Weights& sample_weight = {}) {
  if constexpr (detail::require_arrays_in_program<L, Outputs, Targets>()) {
    using T = typename Outputs::Element;
    constexpr std::size_t batch = Outputs::extents[0];
    using PerRow = hlo::Traced<T, batch>;
    const hlo::Scope scope{L::name};
    using Matrix = detail::MatrixOf<Outputs>;
    detail::check_rows(loss, L::name, detail::shape_only(outputs), detail::shape_only(targets));
    const auto counts = detail::first_rows<batch>(rows);
    // Where a row does not count, the choice keeps a gradient of NaN from what comes before, and at the end a loss of NaN.
    const Matrix counted = hlo::select(hlo::broadcast<typename Matrix::template With<bool>, 0>(counts),
                                       detail::in_shape_of<Matrix>(outputs), Matrix{0});
    PerRow losses = LossLowering<L>::per_example(loss, counted, targets);
    if constexpr (!std::same_as<Weights, Unweighted>)
      losses = losses * detail::traced_weights<PerRow>(L::name, sample_weight, outputs);
    return PerRow{hlo::select(counts, losses, PerRow{0})};
  } else {
    return dist::detail::refused<hlo::Traced<float, hlo::batch>>();
  }
}

/// What nn::compute_loss is in a step that is traced. Throws as traced_losses, and InvalidArgument when a replica has more rows
/// than the global batch.
template <class L, class Outputs, class Targets, class Weights>
[[nodiscard]] auto traced_loss(const L& loss, const InTrace auto& replica, const Outputs& outputs,
                               const Targets& targets, GlobalBatchSize global_batch, const Weights& sample_weight) {
  const auto losses = traced_losses(loss, replica.rows(), outputs, targets, sample_weight);
  using T = typename std::remove_const_t<decltype(losses)>::Element;
  detail::require_global_batch_size(global_batch, hlo::untyped::type_of(losses.value()).shape[0], 0,
                                    replica.num_replicas_in_sync());
  return hlo::reduce(sum, losses) * hlo::Traced<T>{static_cast<T>(1 / static_cast<double>(global_batch.value()))};
}

/// What an nn::Reduced is in a step that is traced, of which nn::Reduction::Sum makes one number.
template <class L, class Outputs, class Targets, class Weights>
[[nodiscard]] auto traced_sum_of_losses(const L& loss, const InTrace auto& replica, const Outputs& outputs,
                                        const Targets& targets, const Weights& sample_weight, Reduction::Sum) {
  return hlo::reduce(sum, traced_losses(loss, replica.rows(), outputs, targets, sample_weight));
}

}  // namespace dist::nn
