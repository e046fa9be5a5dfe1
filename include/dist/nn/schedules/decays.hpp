#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/check.hpp>

namespace dist::nn {

/// A learning rate that falls from `initial_learning_rate` to `alpha` times this rate along half a cosine wave in
/// `decay_steps` steps, and then stays constant (Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm
/// restarts", ICLR 2017; Keras' CosineDecay). For a warm-up see nn::WarmUp.
struct CosineDecay {
  float initial_learning_rate;  ///< of step 0
  std::int64_t decay_steps;     ///< until the lowest rate
  float alpha = 0;              ///< the lowest rate as a fraction of the initial one

  /// Throws InvalidArgument.
  void check() const;
  [[nodiscard]] double operator()(std::int64_t step) const {
    const double part = static_cast<double>(std::min(step, decay_steps)) / static_cast<double>(decay_steps);
    const double wave = 0.5 * (1 + std::cos(std::numbers::pi * part));
    return double{initial_learning_rate} * ((1 - double{alpha}) * wave + double{alpha});
  }
};

/// The learning rate initial_learning_rate * decay_rate^(step / decay_steps); `staircase` rounds the exponent down
/// (Keras' ExponentialDecay).
struct ExponentialDecay {
  float initial_learning_rate;  ///< of step 0
  std::int64_t decay_steps;     ///< steps in which the rate falls by `decay_rate`
  float decay_rate;             ///< factor for each `decay_steps` steps
  bool staircase = false;       ///< true if the rate falls in whole `decay_steps` steps only

  /// Throws InvalidArgument.
  void check() const;
  [[nodiscard]] double operator()(std::int64_t step) const {
    const double power = static_cast<double>(step) / static_cast<double>(decay_steps);
    return double{initial_learning_rate} * std::pow(double{decay_rate}, staircase ? std::floor(power) : power);
  }
};

/// The learning rate values[i] up to and including step boundaries[i], and the last value after all boundaries
/// (Keras' PiecewiseConstantDecay).
struct PiecewiseConstant {
  std::vector<std::int64_t> boundaries;  ///< last steps of all values except the last one, ascending
  std::vector<float> values;             ///< learning rates

  /// Throws InvalidArgument.
  void check() const;
  [[nodiscard]] double operator()(std::int64_t step) const {
    std::size_t piece = 0;
    while (piece < boundaries.size() && step > boundaries[piece]) ++piece;
    return double{values[piece]};
  }
};

/// A learning rate as a function of the step, an option of nn::With:
///
///     nn::With{nn::Adam{}, nn::CosineDecay{.initial_learning_rate = 1e-3f, .decay_steps = 10'000}}
///
/// `schedule(step)` returns the learning rate of update `step`, from 0, as in Keras; accumulated calls are one
/// update. It runs on each replica and must return the same rate on all. Function objects without captures are
/// schedules: `[](std::int64_t step) { return 1e-3 / (1 + step); }`. A schedule may have a `check()` that throws
/// InvalidArgument if a member is out of range.
template <class F>
concept LearningRateSchedule = std::copyable<F> && requires(const F schedule, std::int64_t step) {
  { schedule(step) } -> std::convertible_to<double>;
};

namespace detail {

template <class F>
concept HasCheck = requires(const F checked) {
  checked.check();
};
template <class F>
void check_if_can(const F& given) {
  if constexpr (HasCheck<F>) given.check();
}

}  // namespace detail

}  // namespace dist::nn

#ifndef DIST_COMPILED
#include <dist/nn/schedules/decays.ipp>
#endif
