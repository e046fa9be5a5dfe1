#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/crossentropy_of_row.hpp>

namespace dist::nn {

/// Cross-entropy between logits, one per class, and the classes' target probabilities, such as a one-hot row:
/// `sum_k target_k (log(sum_j exp(x_j)) - x_k)`. The network must not end in a softmax, unless `from_logits` is false:
/// then outputs are probabilities p, with loss `-sum_k target_k log(p_k / sum_j p_j)`, quotients clipped to [1e-7, 1 -
/// 1e-7] (as in Keras). Targets have the outputs' shape; for integer labels use nn::SparseCategoricalCrossentropy.
struct CategoricalCrossentropy {
  static constexpr std::string_view name = "categorical_crossentropy";
  static constexpr bool is_along_last_axis = true;

  /// True if outputs are logits, false if they are probabilities.
  bool from_logits = true;
  /// Fraction of the targets spread evenly over all classes (Szegedy et al.: "Rethinking the Inception architecture for
  /// computer vision", CVPR 2016).
  float label_smoothing = 0;

  /// Throws ShapeMismatch, and InvalidArgument for a smoothing out of range.
  template <std::floating_point T, class Target, dist::MemorySpace Where>
  void check(TensorView<const T, Where> outputs, TensorView<const Target, Where> targets) const {
    detail::require_part(name, "label_smoothing", label_smoothing);
    if (outputs.row_size() > 1 && targets.row_size() == 1 && outputs.rows() == targets.rows() && outputs.rows() > 0)
      throw ShapeMismatch(
          concat(name, " got one target for each example"),
          concat("outputs ", to_string(outputs.shape()), ", targets ", to_string(targets.shape())),
          concat("Give one row of ", outputs.row_size(),
                 " elements for each example, or use sparse_categorical_crossentropy for class numbers"));
    require_targets(name, outputs, targets, outputs.row_size());
  }

  template <class Outputs, class Targets>
    requires Real<typename Outputs::Element>
  [[nodiscard]] DIST_HD typename Outputs::Number per_example(Outputs outputs, Targets targets) const {
    const detail::SmoothedTargets<Outputs, Targets> target{targets, outputs.size(), label_smoothing};
    return from_logits ? detail::crossentropy_of_logits(outputs, target)
                       : of_probabilities(outputs, target, total_of(outputs));
  }

  /// Returns the loss and writes its gradient times `scale`: for logits `(softmax(logits) - targets) * scale`, if
  /// targets add up to 1.
  template <std::floating_point T, class Target>
  DIST_HD T per_example(Row<const T> outputs, Row<const Target> targets, T scale, Row<T> gradient) const {
    const detail::SmoothedTargets<Row<const T>, Row<const Target>> target{targets, outputs.size(), label_smoothing};
    if (from_logits) return detail::crossentropy_of_logits(outputs, target, scale, gradient);
    const T sum = total_of(outputs);
    T parts = 0;  // of targets with unclipped probabilities
    for (std::size_t k = 0; k < outputs.size(); ++k) parts += detail::unless_clipped(outputs[k] / sum, target(k));
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const T part = detail::unless_clipped(outputs[k] / sum, target(k) / outputs[k]);
      gradient[k] = scale * (parts / sum - part);
    }
    return of_probabilities(outputs, target, sum);
  }

 private:
  template <class Outputs>
  [[nodiscard]] static DIST_HD typename Outputs::Number total_of(Outputs outputs) {
    return sum_of(outputs, [&](auto k) { return outputs[k]; });
  }
  template <class Outputs, class Target>
  [[nodiscard]] static DIST_HD typename Outputs::Number of_probabilities(Outputs outputs, const Target& target,
                                                                         typename Outputs::Number sum) {
    using std::log;
    return -sum_of(outputs, [&](auto k) { return target(k) * log(detail::clipped_probability(outputs[k] / sum)); });
  }
};

}  // namespace dist::nn
