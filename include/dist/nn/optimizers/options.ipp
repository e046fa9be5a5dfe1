#pragma once

#include <algorithm>

#include <dist/nn/optimizers/options.hpp>

namespace dist::nn {

DIST_INLINE bool WeightDecay::applies_to(std::string_view parameter) const {
  return std::none_of(exclude.begin(), exclude.end(),
                      [&](const std::string& part) { return parameter.find(part) != std::string_view::npos; });
}

DIST_INLINE void AverageWeights::check() const {
  detail::require_part("AverageWeights", "momentum", momentum);
  if (overwrite_frequency < 0)
    throw InvalidArgument("AverageWeights.overwrite_frequency is out of range", concat("it is ", overwrite_frequency),
                          "Give a number of updates, or 0 for never");
}

DIST_INLINE void AccumulateGradients::check() const {
  if (steps < 1)
    throw InvalidArgument("AccumulateGradients.steps is out of range", concat("it is ", steps),
                          "Give the number of calls that make up an update, 1 or more");
}

}  // namespace dist::nn
