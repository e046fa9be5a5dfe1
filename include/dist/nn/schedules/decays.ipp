#pragma once

#include <dist/nn/schedules/decays.hpp>

namespace dist::nn {

DIST_INLINE void CosineDecay::check() const {
  detail::require_not_negative("CosineDecay", "initial_learning_rate", initial_learning_rate);
  detail::require_positive_steps("CosineDecay", "decay_steps", decay_steps);
  detail::require_not_negative("CosineDecay", "alpha", alpha);
}

DIST_INLINE void ExponentialDecay::check() const {
  detail::require_not_negative("ExponentialDecay", "initial_learning_rate", initial_learning_rate);
  detail::require_positive_steps("ExponentialDecay", "decay_steps", decay_steps);
  detail::require_positive("ExponentialDecay", "decay_rate", decay_rate);
}

DIST_INLINE void PiecewiseConstant::check() const {
  if (values.size() != boundaries.size() + 1)
    throw InvalidArgument("PiecewiseConstant has the wrong number of values",
                          concat("there are ", values.size(), " values and ", boundaries.size(), " boundaries"),
                          "Give one more value than boundaries");
  for (std::size_t i = 1; i < boundaries.size(); ++i)
    if (boundaries[i] <= boundaries[i - 1])
      throw InvalidArgument("PiecewiseConstant.boundaries do not increase",
                            concat(boundaries[i], " follows ", boundaries[i - 1]), "Give steps in increasing order");
  for (const float value : values) detail::require_not_negative("PiecewiseConstant", "values", value);
}

}  // namespace dist::nn
