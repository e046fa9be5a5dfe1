#pragma once

#include <string_view>

#include <dist/nn/metric.hpp>

namespace dist::nn {

/// The weighted mean of numbers: `metric.update(replica, value)` or `metric.update(replica, value, weight)`.
struct MeanValue {
  using Tally = nn::Tally<double, double>;

  std::string_view name = "mean";

  [[nodiscard]] Tally operator()(double value, double weight = 1) const { return {value * weight, weight}; }
};

}  // namespace dist::nn
