#pragma once

#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/sparse_top_k_categorical_accuracy.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// How often the output of the class with the largest target is among the `k` largest; equal outputs are all among them.
/// Targets have the outputs' shape, [rows, classes].
struct TopKCategoricalAccuracy {
  static constexpr bool more_is_better = true;

  using Tally = nn::Tally<double, double>;

  std::size_t k = 5;
  std::string_view name = "top_k_categorical_accuracy";

  template <class T, class Target>
  [[nodiscard]] DIST_HD double of_row(Row<const T> outputs, Row<const Target> targets) const {
    return detail::is_in_top(outputs, index_of_largest(targets), k) ? 1 : 0;
  }
};

}  // namespace dist::nn
