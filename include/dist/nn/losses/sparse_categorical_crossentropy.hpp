#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
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

namespace detail {

/// Returns the loss; see SparseCategoricalCrossentropy.
template <class Outputs, class Label>
[[nodiscard]] DIST_HD typename Outputs::Number crossentropy_of_label(Outputs outputs,
                                                                     const SmoothedLabel<Outputs, Label>& target,
                                                                     bool from_logits) {
  using std::log;
  using Number = typename Outputs::Number;
  if (from_logits) return crossentropy_of_logits(outputs, target);
  const Number sum = sum_of(outputs, [&](auto k) { return clipped_probability(outputs[k]); });
  const Number logs = sum_of(outputs, [&](auto k) { return target(k) * log(clipped_probability(outputs[k])); });
  return log(sum) - logs;
}
/// Returns the loss and writes its gradient times `scale`.
template <std::floating_point T, class Label>
[[nodiscard]] DIST_HD T crossentropy_of_label(Row<const T> outputs, const SmoothedLabel<Row<const T>, Label>& target,
                                              bool from_logits, T scale, Row<T> gradient) {
  if (from_logits) return crossentropy_of_logits(outputs, target, scale, gradient);
  T sum = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k) sum += clipped_probability(outputs[k]);
  for (std::size_t k = 0; k < outputs.size(); ++k)
    gradient[k] = unless_clipped(outputs[k], scale * (T{1} / sum - target(k) / outputs[k]));
  return crossentropy_of_label(outputs, target, from_logits);
}

using LabelOfFloats = SmoothedLabel<Row<const float>, std::size_t>;
#if defined(DIST_COMPILED) && !defined(__CUDACC__)
extern template float crossentropy_of_label(Row<const float>, const LabelOfFloats&, bool);
extern template float crossentropy_of_label(Row<const float>, const LabelOfFloats&, bool, float, Row<float>);
#endif

}  // namespace detail

/// Cross-entropy between logits, one per class, and the correct class's integer label: `log(sum_k exp(x_k)) - x_label`.
/// The network must not end in a softmax, unless `from_logits` is false: then outputs are probabilities p, clipped to
/// [1e-7, 1 - 1e-7] (as in Keras), with loss `log(sum_k p_k) - log p_label`. Targets are of an integer type: [rows] or
/// [rows, 1], or for outputs [rows, length, classes] a label of each element, [rows, length].
struct SparseCategoricalCrossentropy {
  static constexpr std::string_view name = "sparse_categorical_crossentropy";

  /// See LossLowering.
  static constexpr bool takes_labels = true;

  /// True if outputs are logits, false if they are probabilities.
  bool from_logits = true;
  /// Fraction of the target spread evenly over all classes (Szegedy et al.: "Rethinking the Inception architecture for
  /// computer vision", CVPR 2016).
  float label_smoothing = 0;
  /// The label of examples to leave out of the loss, its gradient and the mean, such as -1 for padding (Keras'
  /// `ignore_class`). nn::Model divides by the number of the others on all replicas; in loops of your own give
  /// `count_labels` as the global batch size.
  std::int64_t ignore_class = ignore_none;

  template <class Target>
  static constexpr void require_target() {
    static_assert(dist::detail::satisfied<std::integral<Target>>,
                  "nn::SparseCategoricalCrossentropy takes integer labels, the number of the class of each example: "
                  "give a dist::Tensor of an integer type as targets");
  }

  /// Throws InvalidArgument for a smoothing out of range, and a label out of range in the host's memory.
  template <std::floating_point T, std::integral Label, dist::MemorySpace Where>
  void check(TensorView<const T, Where> logits, TensorView<const Label, Where> labels) const {
    detail::require_part(name, "label_smoothing", label_smoothing);
    if constexpr (Where::host_accessible)
      for (std::size_t row = 0; row < labels.rows(); ++row)
        if (!takes(row_of(labels.elements().subspan(row, 1)), logits.row_size()))
          refuse(labels[row], row, logits.row_size());
  }

  /// True if the label is in range, or ignored.
  template <std::integral Label>
  [[nodiscard]] DIST_HD bool takes(Row<const Label> label, std::size_t classes) const {
    return class_of(label) < classes || !detail::is_counted(*this, label);
  }
  template <std::integral Label>
  [[noreturn]] static void refuse(Label label, std::size_t example, std::size_t classes) {
    throw InvalidArgument(concat("Label ", +label, " of example ", example, " is not a class"),
                          concat("the outputs have ", classes, " classes, 0 to ", classes - 1),
                          "Number the labels from 0, and give the last layer one output per class");
  }

  template <class Outputs, class Labels>
    requires(Real<typename Outputs::Element>&& std::integral<typename Labels::Element>)
  [[nodiscard]] DIST_HD typename Outputs::Number per_example(Outputs outputs, Labels label) const {
    return detail::crossentropy_of_label(outputs, parts(outputs, label), from_logits);
  }

  /// Returns the loss and writes its gradient times `scale`; for logits `(softmax(logits) - onehot(label)) * scale`.
  template <std::floating_point T, std::integral Label>
  DIST_HD T per_example(Row<const T> outputs, Row<const Label> label, T scale, Row<T> gradient) const {
    return detail::crossentropy_of_label(outputs, parts(outputs, label), from_logits, scale, gradient);
  }

 private:
  template <class Outputs, class Labels>
  [[nodiscard]] DIST_HD auto parts(Outputs outputs, Labels label) const {
    const auto number = class_of(label);
    return detail::SmoothedLabel<Outputs, std::remove_const_t<decltype(number)>>{number, outputs.size(),
                                                                                 label_smoothing};
  }
};

/// Returns the loss of this replica's rows of a global batch, in custom training loops (spec P01, P04), and writes its
/// gradient to `logits.gradient`. `strategy.reduce(dist::sum, …)` of the replicas' `value()` is the mean over the
/// global batch. `sample_weight` is one number per row, or per label.
template <DifferentiableOutputs Logits, class Labels, class Weights = Unweighted>
[[nodiscard]] auto sparse_categorical_crossentropy(const InReplica auto& replica, const Logits& logits,
                                                   const Labels& labels, GlobalBatchSize global_batch,
                                                   const Weights& sample_weight = {}) {
  return compute_loss(SparseCategoricalCrossentropy{}, replica, logits, labels, global_batch, sample_weight);
}
/// Returns the loss in a traced step, as a traced number.
template <class Logits, class Labels, class Weights = Unweighted>
[[nodiscard]] auto sparse_categorical_crossentropy(const InTrace auto& replica, const Logits& logits,
                                                   const Labels& labels, const auto& global_batch,
                                                   const Weights& sample_weight = {}) {
  return compute_loss(SparseCategoricalCrossentropy{}, replica, logits, labels, global_batch, sample_weight);
}

}  // namespace dist::nn
