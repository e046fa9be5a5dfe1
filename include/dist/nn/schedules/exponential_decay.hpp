#pragma once

#include <cmath>
#include <cstdint>

#include <dist/nn/check.hpp>

namespace dist::nn {

/// A learning rate of initial_learning_rate decay_rate^(step / decay_steps), or with `staircase` of that power rounded down
/// (Keras' ExponentialDecay). See LearningRateSchedule.
struct ExponentialDecay {
  float initial_learning_rate;
  std::int64_t decay_steps;
  float decay_rate;
  bool staircase = false;

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative("ExponentialDecay", "initial_learning_rate", initial_learning_rate);
    detail::require_positive_steps("ExponentialDecay", "decay_steps", decay_steps);
    detail::require_positive("ExponentialDecay", "decay_rate", decay_rate);
  }
  [[nodiscard]] double operator()(std::int64_t step) const {
    const double power = static_cast<double>(step) / static_cast<double>(decay_steps);
    return double{initial_learning_rate} * std::pow(double{decay_rate}, staircase ? std::floor(power) : power);
  }
};

}  // namespace dist::nn
