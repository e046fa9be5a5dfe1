/// The counts of binary metrics.
#pragma once

#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn::detail {

/// Returns part / all, or 0 if `all` is 0.
[[nodiscard]] inline double part_of(double part, double all) { return all == 0 ? 0 : part / all; }

/// A weighted confusion matrix. Outputs above the threshold and targets other than 0 are positive.
struct BinaryConfusion {
  double true_negatives;
  double false_positives;
  double false_negatives;
  double true_positives;

  /// The axes: target, then output.
  [[nodiscard]] static Shape shape() { return {2, 2}; }
  explicit BinaryConfusion(TensorView<const double> counts)
      : true_negatives(counts[0]), false_positives(counts[1]), false_negatives(counts[2]), true_positives(counts[3]) {}

  /// Returns an element's cell.
  template <class T, class Target>
  [[nodiscard]] static DIST_HD auto bin(T output, Target target, float threshold) {
    return 2 * bin_of(target != Target{0}) + bin_of(output > static_cast<T>(threshold));
  }
};

struct PrecisionScore {
  static constexpr std::string_view name = "precision";
  [[nodiscard]] static double of(const BinaryConfusion& answers) {
    return part_of(answers.true_positives, answers.true_positives + answers.false_positives);
  }
};
struct RecallScore {
  static constexpr std::string_view name = "recall";
  [[nodiscard]] static double of(const BinaryConfusion& answers) {
    return part_of(answers.true_positives, answers.true_positives + answers.false_negatives);
  }
};
struct F1Score {
  static constexpr std::string_view name = "f1";
  [[nodiscard]] static double of(const BinaryConfusion& answers) {
    return part_of(2 * answers.true_positives,
                   2 * answers.true_positives + answers.false_positives + answers.false_negatives);
  }
};

/// A metric that is a score of the confusion matrix.
template <class Score>
struct BinaryScore {
  static constexpr bool more_is_better = true;

  float threshold = 0.5f;
  std::string_view name = Score::name;

  void check() const {}
  [[nodiscard]] static Shape shape() { return BinaryConfusion::shape(); }
  template <class Outputs, class Targets, class Add>
  DIST_HD void for_each_bin(Outputs outputs, Targets targets, const Add& add) const {
    for_each_element(outputs, [&](auto i) { add(BinaryConfusion::bin(outputs[i], targets[i], threshold)); });
  }
  [[nodiscard]] static double result(TensorView<const double> counts) { return Score::of(BinaryConfusion{counts}); }
};

}  // namespace dist::nn::detail

namespace dist::nn {

/// The fraction of elements with an output above the threshold whose target is not 0; 0 without any. Targets have the
/// outputs' shape. For logits use threshold 0 for a probability of 0.5.
using Precision = detail::BinaryScore<detail::PrecisionScore>;

/// The fraction of elements with a target other than 0 whose output is above the threshold; 0 without any. Targets have
/// the outputs' shape. For logits use threshold 0 for a probability of 0.5.
using Recall = detail::BinaryScore<detail::RecallScore>;

/// The harmonic mean of nn::Precision and nn::Recall over all elements (Keras' F1Score with a threshold and average
/// "micro"); 0 if undefined. Targets have the outputs' shape.
using F1 = detail::BinaryScore<detail::F1Score>;

}  // namespace dist::nn
