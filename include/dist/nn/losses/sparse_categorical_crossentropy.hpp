#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

/// Cross-entropy between logits (any real numbers, one per class) and the integer label of the right class:
/// log(sum_k exp(x_k)) - x_label. The network must not end in a softmax. Targets: [rows] or [rows, 1] of an
/// integer type.
struct SparseCategoricalCrossentropy {
  static constexpr std::string_view name = "sparse_categorical_crossentropy";

  template <class Target>
  static constexpr void require_target() {
    static_assert(dist::detail::holds<std::integral<Target>>,
                  "nn::SparseCategoricalCrossentropy takes integer labels, the number of the class of each example: "
                  "give a dist::Tensor of an integer type as targets");
  }

  /// Throws ShapeMismatch, and InvalidArgument for a label of the host that is no class.
  template <std::floating_point T, std::integral Label, dist::Place Where>
  void check(TensorView<const T, Where> logits, TensorView<const Label, Where> labels) const {
    require_targets(name, logits, labels, 1);
    if constexpr (Where::host_accessible)
      for (std::size_t row = 0; row < labels.rows(); ++row)
        if (!takes(row_of(labels.elements().subspan(row, 1)), logits.row_size()))
          refuse(labels[row], row, logits.row_size());
  }

  /// Whether the label is a class.
  template <std::integral Label>
  [[nodiscard]] static DIST_HD bool takes(Row<const Label> label, std::size_t classes) {
    if constexpr (std::signed_integral<Label>)
      if (label[0] < 0) return false;
    return static_cast<std::size_t>(label[0]) < classes;
  }
  template <std::integral Label>
  [[noreturn]] static void refuse(Label label, std::size_t row, std::size_t classes) {
    throw InvalidArgument(text("Label ", +label, " of row ", row, " is not a class"),
                          text("the outputs have ", classes, " classes, 0 to ", classes - 1),
                          "Number the labels from 0, and give the last layer one output per class");
  }

  template <std::floating_point T, std::integral Label>
  [[nodiscard]] T per_example(std::span<const T> logits, std::span<const Label> label) const {
    return per_example(row_of(logits), row_of(label));
  }
  template <std::floating_point T, std::integral Label>
  [[nodiscard]] DIST_HD T per_example(Row<const T> logits, Row<const Label> label) const {
    const std::size_t top = index_of_largest(logits);
    T others = 0;
    for (std::size_t k = 0; k < logits.size(); ++k)
      if (k != top) others += std::exp(logits[k] - logits[top]);
    return loss(logits, label, top, others);
  }

  /// The gradient is (softmax(logits) - onehot(label)) * scale.
  template <std::floating_point T, std::integral Label>
  T per_example(std::span<const T> logits, std::span<const Label> label, T scale, std::span<T> gradient) const {
    return per_example(row_of(logits), row_of(label), scale, row_of(gradient));
  }
  template <std::floating_point T, std::integral Label>
  DIST_HD T per_example(Row<const T> logits, Row<const Label> label, T scale, Row<T> gradient) const {
    const std::size_t top = index_of_largest(logits);
    T others = 0;
    for (std::size_t k = 0; k < logits.size(); ++k) {
      gradient[k] = std::exp(logits[k] - logits[top]);
      if (k != top) others += gradient[k];
    }
    const T normalise = scale / (T{1} + others);
    for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] *= normalise;
    gradient[static_cast<std::size_t>(label[0])] -= scale;
    return loss(logits, label, top, others);
  }

 private:
  /// With the largest logit taken out of the sum nothing overflows, and small losses keep their digits.
  template <class T, class Label>
  static DIST_HD T loss(Row<const T> logits, Row<const Label> label, std::size_t top, T others) {
    return (logits[top] - logits[static_cast<std::size_t>(label[0])]) + std::log1p(others);
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

}  // namespace dist::nn
