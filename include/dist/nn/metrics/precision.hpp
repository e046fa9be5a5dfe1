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

/// Of the elements whose output is above the threshold, the part whose target is not 0; 0 where there is none. Targets have
/// the outputs' shape. For logits the threshold 0 is that of a probability of 0.5.
struct Precision {
  static constexpr bool more_is_better = true;

  float threshold = 0.5f;
  std::string_view name = "precision";

  void check() const {}
  [[nodiscard]] static Shape shape() { return detail::Answers::shape(); }
  template <class T, class Target, class Add>
  DIST_HD void for_each_cell(Row<const T> outputs, Row<const Target> targets, const Add& add) const {
    detail::Answers::for_each_cell(outputs, targets, threshold, add);
  }
  [[nodiscard]] static double result(TensorView<const double> counts) {
    const detail::Answers answers{counts};
    return detail::part_of(answers.true_positives, answers.true_positives + answers.false_positives);
  }
};

}  // namespace dist::nn
