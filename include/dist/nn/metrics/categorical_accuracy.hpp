#pragma once

#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// How often the largest output is that of the class with the largest target; among equal numbers the first counts. Targets
/// have the outputs' shape, [rows, classes].
struct CategoricalAccuracy {
  static constexpr bool more_is_better = true;

  using Tally = nn::Tally<double, double>;

  std::string_view name = "accuracy";

  template <class T, class Target>
  [[nodiscard]] DIST_HD double of_row(Row<const T> outputs, Row<const Target> targets) const {
    return index_of_largest(outputs) == index_of_largest(targets) ? 1 : 0;
  }
};

}  // namespace dist::nn
