#pragma once

#include <concepts>
#include <cstdint>

namespace dist::nn {

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
