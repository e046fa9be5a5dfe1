/// What metrics of yes and no count.
#pragma once

#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn::detail {

/// 0 where there is nothing that it is a part of.
[[nodiscard]] inline double part_of(double part, double all) { return all == 0 ? 0 : part / all; }

/// The weights of the elements of each kind. An answer is positive where the output is above a threshold, and true where the
/// target, which means yes unless it is 0, agrees.
struct BinaryConfusion {
  double true_negatives;
  double false_positives;
  double false_negatives;
  double true_positives;

  /// The right answer, and the one that was given.
  [[nodiscard]] static Shape shape() { return {2, 2}; }
  explicit BinaryConfusion(TensorView<const double> counts)
      : true_negatives(counts[0]), false_positives(counts[1]), false_negatives(counts[2]), true_positives(counts[3]) {}

  template <class T, class Target, class Add>
  static DIST_HD void for_each_bin(Row<const T> outputs, Row<const Target> targets, float threshold, const Add& add) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      add((targets[i] != Target{0} ? std::size_t{2} : std::size_t{0}) +
          (outputs[i] > static_cast<T>(threshold) ? std::size_t{1} : std::size_t{0}));
  }
};

}  // namespace dist::nn::detail

namespace dist::nn {

/// Of the elements whose output is above the threshold, the part whose target is not 0; 0 where there is none. Targets have
/// the outputs' shape. For logits the threshold 0 is that of a probability of 0.5.
struct Precision {
  static constexpr bool more_is_better = true;

  float threshold = 0.5f;
  std::string_view name = "precision";

  void check() const {}
  [[nodiscard]] static Shape shape() { return detail::BinaryConfusion::shape(); }
  template <class T, class Target, class Add>
  DIST_HD void for_each_bin(Row<const T> outputs, Row<const Target> targets, const Add& add) const {
    detail::BinaryConfusion::for_each_bin(outputs, targets, threshold, add);
  }
  [[nodiscard]] static double result(TensorView<const double> counts) {
    const detail::BinaryConfusion answers{counts};
    return detail::part_of(answers.true_positives, answers.true_positives + answers.false_positives);
  }
};

/// Of the elements whose target is not 0, the part whose output is above the threshold; 0 where there is none. Targets have
/// the outputs' shape. For logits the threshold 0 is that of a probability of 0.5.
struct Recall {
  static constexpr bool more_is_better = true;

  float threshold = 0.5f;
  std::string_view name = "recall";

  void check() const {}
  [[nodiscard]] static Shape shape() { return detail::BinaryConfusion::shape(); }
  template <class T, class Target, class Add>
  DIST_HD void for_each_bin(Row<const T> outputs, Row<const Target> targets, const Add& add) const {
    detail::BinaryConfusion::for_each_bin(outputs, targets, threshold, add);
  }
  [[nodiscard]] static double result(TensorView<const double> counts) {
    const detail::BinaryConfusion answers{counts};
    return detail::part_of(answers.true_positives, answers.true_positives + answers.false_negatives);
  }
};

/// The harmonic mean of nn::Precision and nn::Recall over all elements (Keras' F1Score with a threshold and the average
/// "micro"); 0 where there is neither. Targets have the outputs' shape.
struct F1 {
  static constexpr bool more_is_better = true;

  float threshold = 0.5f;
  std::string_view name = "f1";

  void check() const {}
  [[nodiscard]] static Shape shape() { return detail::BinaryConfusion::shape(); }
  template <class T, class Target, class Add>
  DIST_HD void for_each_bin(Row<const T> outputs, Row<const Target> targets, const Add& add) const {
    detail::BinaryConfusion::for_each_bin(outputs, targets, threshold, add);
  }
  [[nodiscard]] static double result(TensorView<const double> counts) {
    const detail::BinaryConfusion answers{counts};
    return detail::part_of(2 * answers.true_positives,
                           2 * answers.true_positives + answers.false_positives + answers.false_negatives);
  }
};

}  // namespace dist::nn
