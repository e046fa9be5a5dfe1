#include <dist/nn/schedules/warm_up.hpp>

#include <cstdint>
#include <type_traits>

#include <doctest/doctest.h>
#include <dist/core/error.hpp>
#include <dist/nn/schedules/decays.hpp>

#include "compare.hpp"

namespace nn = dist::nn;

TEST_CASE("each step has the rate of Keras' cosine decay with a warm-up") {
  compare(nn::WarmUp{5, nn::CosineDecay{.initial_learning_rate = 0.1f, .decay_steps = 6, .alpha = 0.1f}, 0.01f},
          keras_schedules::cosine_decay_after_warm_up);
}

TEST_CASE("the rate rises linearly from 0 to the first rate of any schedule, which then continues") {
  const nn::WarmUp warm_up{4, [](std::int64_t step) { return 2.0 + static_cast<double>(step); }};
  static_assert(nn::LearningRateSchedule<std::remove_const_t<decltype(warm_up)>>);
  CHECK_NOTHROW(warm_up.check());
  const double expected[] = {0, 0.5, 1, 1.5, 2, 3, 4};
  for (std::int64_t step = 0; step < 7; ++step) CHECK(warm_up(step) == expected[step]);
}

TEST_CASE("parameters out of range are rejected, also in the inner schedule") {
  const nn::CosineDecay decay{.initial_learning_rate = 0.1f, .decay_steps = 6};
  CHECK_THROWS_AS((nn::WarmUp{0, decay}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::WarmUp{5, decay, -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::WarmUp{5, nn::CosineDecay{0.1f, 0}}).check(), dist::InvalidArgument);
}
