#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include <dist/nn/check.hpp>
#include <dist/nn/schedules/decays.hpp>

namespace dist::nn {

/// A learning rate that rises linearly from `from` to the first rate of another schedule, and then follows it,
/// counting steps from the end of the warm-up (Goyal et al., "Accurate, large minibatch SGD", 2017; Keras'
/// CosineDecay with warmup_steps).
///
///     nn::WarmUp{500, nn::CosineDecay{.initial_learning_rate = 0.1f, .decay_steps = 10'000}}
template <LearningRateSchedule S>
struct WarmUp {
  /// The number of steps before `then`.
  std::int64_t steps;
  /// The schedule after the warm-up, with its own steps from 0.
  S then;
  /// The learning rate of step 0.
  float from;

  /// Step 0 has the rate `first_rate`, step `steps_before` the rate `schedule(0)`.
  WarmUp(std::int64_t steps_before, S schedule, float first_rate = 0)
      : steps(steps_before), then(std::move(schedule)), from(first_rate) {}

  /// For archives.
  [[nodiscard]] auto parts() const { return std::tie(steps, then, from); }
  [[nodiscard]] static WarmUp of_parts(std::int64_t steps, S then, float from) {
    return {steps, std::move(then), from};
  }

  /// Throws InvalidArgument.
  void check() const {
    detail::require_positive_steps("WarmUp", "steps", steps);
    detail::require_not_negative("WarmUp", "from", from);
    detail::check_if_can(then);
  }
  [[nodiscard]] double operator()(std::int64_t step) const {
    if (step >= steps) return then(step - steps);
    const double target = then(0);
    return (target - double{from}) * (static_cast<double>(step) / static_cast<double>(steps)) + double{from};
  }
};

}  // namespace dist::nn
