#pragma once

#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// How often a target is 1 and its output above the threshold, or 0 and not above it: the mean over rows of the mean over a
/// row's elements. Targets have the outputs' shape. For logits the threshold 0 is that of a probability of 0.5.
struct BinaryAccuracy {
  static constexpr bool more_is_better = true;

  using Tally = nn::Tally<double, double>;

  float threshold = 0.5f;
  std::string_view name = "binary_accuracy";

  template <class T, class Target>
  [[nodiscard]] DIST_HD double of_row(Row<const T> outputs, Row<const Target> targets) const {
    double right = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool is_yes = outputs[i] > static_cast<T>(threshold);
      if (targets[i] == static_cast<Target>(is_yes ? 1 : 0)) ++right;
    }
    return right / static_cast<double>(outputs.size());
  }
};

}  // namespace dist::nn
