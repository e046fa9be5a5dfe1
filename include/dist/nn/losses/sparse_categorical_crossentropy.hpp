#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/crossentropy_of_row.hpp>

namespace dist::nn {

/// Cross-entropy between logits (any real numbers, one per class) and the integer label of the right class:
/// log(sum_k exp(x_k)) - x_label. The network must not end in a softmax, unless `from_logits` is false: then outputs are
/// probabilities, p, and the loss is log(sum_k p_k) - log p_label, in which each p is at least 1e-7 and at most 1 - 1e-7 (as
/// in Keras). Targets: [rows] or [rows, 1] of an integer type.
struct SparseCategoricalCrossentropy {
  static constexpr std::string_view name = "sparse_categorical_crossentropy";

  /// See LossLowering.
  static constexpr bool takes_labels = true;

  bool from_logits = true;
  /// This part of the right answer is spread over all classes evenly (Szegedy et al.: "Rethinking the Inception
  /// architecture for computer vision", CVPR 2016).
  float label_smoothing = 0;

  template <class Target>
  static constexpr void require_target() {
    static_assert(dist::detail::satisfied<std::integral<Target>>,
                  "nn::SparseCategoricalCrossentropy takes integer labels, the number of the class of each example: "
                  "give a dist::Tensor of an integer type as targets");
  }

  /// Throws ShapeMismatch, and InvalidArgument for a label of the host that is no class.
  template <std::floating_point T, std::integral Label, dist::MemorySpace Where>
  void check(TensorView<const T, Where> logits, TensorView<const Label, Where> labels) const {
    detail::require_part(name, "label_smoothing", label_smoothing);
    require_targets(name, logits, labels, 1);
    if constexpr (Where::host_accessible)
      for (std::size_t row = 0; row < labels.rows(); ++row)
        if (!takes(row_of(labels.elements().subspan(row, 1)), logits.row_size()))
          refuse(labels[row], row, logits.row_size());
  }

  /// Whether the label is a class.
  template <std::integral Label>
  [[nodiscard]] static DIST_HD bool takes(Row<const Label> label, std::size_t classes) {
    return class_of(label) < classes;
  }
  template <std::integral Label>
  [[noreturn]] static void refuse(Label label, std::size_t row, std::size_t classes) {
    throw InvalidArgument(concat("Label ", +label, " of row ", row, " is not a class"),
                          concat("the outputs have ", classes, " classes, 0 to ", classes - 1),
                          "Number the labels from 0, and give the last layer one output per class");
  }

  template <class Outputs, class Labels>
    requires(Real<typename Outputs::Element>&& std::integral<typename Labels::Element>)
  [[nodiscard]] DIST_HD typename Outputs::Number per_example(Outputs outputs, Labels label) const {
    const auto target = parts(outputs, label);
    return from_logits ? detail::crossentropy_of_logits(outputs, target) : of_probabilities(outputs, target);
  }

  /// The gradient of logits is (softmax(logits) - onehot(label)) * scale.
  template <std::floating_point T, std::integral Label>
  DIST_HD T per_example(Row<const T> outputs, Row<const Label> label, T scale, Row<T> gradient) const {
    const auto target = parts(outputs, label);
    if (from_logits) return detail::crossentropy_of_logits(outputs, target, scale, gradient);
    T sum = 0;
    for (std::size_t k = 0; k < outputs.size(); ++k) sum += detail::clipped_probability(outputs[k]);
    for (std::size_t k = 0; k < outputs.size(); ++k)
      gradient[k] = detail::unless_clipped(outputs[k], scale * (T{1} / sum - target(k) / outputs[k]));
    return of_probabilities(outputs, target);
  }

 private:
  template <class Outputs, class Labels>
  [[nodiscard]] DIST_HD auto parts(Outputs outputs, Labels label) const {
    const auto number = class_of(label);
    return detail::SmoothedLabel<Outputs, std::remove_const_t<decltype(number)>>{number, outputs.size(),
                                                                                 label_smoothing};
  }
  template <class Outputs, class Target>
  [[nodiscard]] static DIST_HD typename Outputs::Number of_probabilities(Outputs outputs, const Target& target) {
    using std::log;
    using Number = typename Outputs::Number;
    const Number sum = sum_of(outputs, [&](auto k) { return detail::clipped_probability(outputs[k]); });
    const Number logs =
        sum_of(outputs, [&](auto k) { return target(k) * log(detail::clipped_probability(outputs[k])); });
    return log(sum) - logs;
  }
};

/// The loss of this replica's rows of a global batch, in a training loop of your own (spec P01, P04): writes
/// the gradient to `logits.gradient`; `strategy.reduce(dist::sum, …)` of the replicas' `value()` is the mean
/// over the global batch. `sample_weight`, one number per row, weighs the rows.
template <DifferentiableOutputs Logits, class Labels, class Weights = Unweighted>
[[nodiscard]] auto sparse_categorical_crossentropy(const InReplica auto& replica, const Logits& logits,
                                                   const Labels& labels, GlobalBatchSize global_batch,
                                                   const Weights& sample_weight = {}) {
  return compute_loss(SparseCategoricalCrossentropy{}, replica, logits, labels, global_batch, sample_weight);
}
/// The same in a step that is traced: a traced number.
template <class Logits, class Labels, class Weights = Unweighted>
[[nodiscard]] auto sparse_categorical_crossentropy(const InTrace auto& replica, const Logits& logits,
                                                   const Labels& labels, GlobalBatchSize global_batch,
                                                   const Weights& sample_weight = {}) {
  return compute_loss(SparseCategoricalCrossentropy{}, replica, logits, labels, global_batch, sample_weight);
}

}  // namespace dist::nn
