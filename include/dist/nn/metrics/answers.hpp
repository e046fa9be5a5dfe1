/// What metrics of yes and no count.
#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn::detail {

/// 0 where there is nothing that it is a part of.
[[nodiscard]] inline double part_of(double part, double all) { return all == 0 ? 0 : part / all; }

/// The weights of the elements of each kind. An answer is positive where the output is above a threshold, and true where the
/// target, which means yes unless it is 0, agrees.
struct Answers {
  double true_negatives;
  double false_positives;
  double false_negatives;
  double true_positives;

  /// The right answer, and the one that was given.
  [[nodiscard]] static Shape shape() { return {2, 2}; }
  explicit Answers(TensorView<const double> counts)
      : true_negatives(counts[0]), false_positives(counts[1]), false_negatives(counts[2]), true_positives(counts[3]) {}

  template <class T, class Target, class Add>
  static DIST_HD void for_each_cell(Row<const T> outputs, Row<const Target> targets, float threshold, const Add& add) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      add((targets[i] != Target{0} ? std::size_t{2} : std::size_t{0}) +
          (outputs[i] > static_cast<T>(threshold) ? std::size_t{1} : std::size_t{0}));
  }
};

}  // namespace dist::nn::detail
