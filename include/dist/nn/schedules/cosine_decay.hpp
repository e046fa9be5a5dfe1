#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include <dist/nn/check.hpp>

namespace dist::nn {

/// A learning rate that falls from initial_learning_rate to `alpha` times that in `decay_steps` steps along half a wave of a
/// cosine, and stays there (Loshchilov, Hutter: "SGDR: stochastic gradient descent with warm restarts", ICLR 2017; Keras'
/// CosineDecay, whose warm-up is nn::WarmUp). See LearningRateSchedule.
struct CosineDecay {
  float initial_learning_rate;
  std::int64_t decay_steps;
  float alpha = 0;

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative("CosineDecay", "initial_learning_rate", initial_learning_rate);
    detail::require_positive_steps("CosineDecay", "decay_steps", decay_steps);
    detail::require_not_negative("CosineDecay", "alpha", alpha);
  }
  [[nodiscard]] double operator()(std::int64_t step) const {
    const double part = static_cast<double>(std::min(step, decay_steps)) / static_cast<double>(decay_steps);
    const double wave = 0.5 * (1 + std::cos(std::numbers::pi * part));
    return double{initial_learning_rate} * ((1 - double{alpha}) * wave + double{alpha});
  }
};

}  // namespace dist::nn
