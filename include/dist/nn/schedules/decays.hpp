#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
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

/// A learning rate of values[0] up to and including step boundaries[0], of values[1] up to and including boundaries[1], and
/// so on; after the last boundary of the last value (Keras' PiecewiseConstantDecay). Without boundaries it is a constant.
/// See LearningRateSchedule.
struct PiecewiseConstant {
  std::vector<std::int64_t> boundaries;
  std::vector<float> values;

  /// Throws InvalidArgument.
  void check() const {
    if (values.size() != boundaries.size() + 1)
      throw InvalidArgument("PiecewiseConstant has a wrong number of values",
                            concat("there are ", values.size(), " values and ", boundaries.size(), " boundaries"),
                            "Give one value more than boundaries");
    for (std::size_t i = 1; i < boundaries.size(); ++i)
      if (boundaries[i] <= boundaries[i - 1])
        throw InvalidArgument("PiecewiseConstant.boundaries do not increase",
                              concat(boundaries[i], " follows ", boundaries[i - 1]), "Give steps in increasing order");
    for (const float value : values) detail::require_not_negative("PiecewiseConstant", "values", value);
  }
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
/// `schedule(step)` is the rate of an update, where the first one has the number 0, as in Keras; updates are counted, not
/// calls, where gradients are accumulated. It is called on each replica and must give all of them the same. A function
/// object without captures is one, too: `[](std::int64_t step) { return 1e-3 / (1 + step); }`. A schedule may have a
/// `check()`, which throws InvalidArgument for what is out of range.
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
