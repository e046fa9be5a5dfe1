#pragma once

#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/answers.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// The harmonic mean of nn::Precision and nn::Recall over all elements (Keras' F1Score with a threshold and the average
/// "micro"); 0 where there is neither. Targets have the outputs' shape.
struct F1 {
  static constexpr bool more_is_better = true;

  float threshold = 0.5f;
  std::string_view name = "f1";

  void check() const {}
  [[nodiscard]] static Shape shape() { return detail::Answers::shape(); }
  template <class T, class Target, class Add>
  DIST_HD void for_each_cell(Row<const T> outputs, Row<const Target> targets, const Add& add) const {
    detail::Answers::for_each_cell(outputs, targets, threshold, add);
  }
  [[nodiscard]] static double result(TensorView<const double> counts) {
    const detail::Answers answers{counts};
    return detail::part_of(2 * answers.true_positives,
                           2 * answers.true_positives + answers.false_positives + answers.false_negatives);
  }
};

}  // namespace dist::nn
