#include <dist/nn/schedules/decays.hpp>

#include <doctest/doctest.h>
#include <dist/core/error.hpp>

#include "compare.hpp"

namespace nn = dist::nn;

static_assert(nn::LearningRateSchedule<nn::ExponentialDecay>);

TEST_CASE("each step has Keras' rate") {
  nn::ExponentialDecay decay{.initial_learning_rate = 0.1f, .decay_steps = 4, .decay_rate = 0.5f};
  compare(decay, keras_schedules::exponential_decay);
  decay.staircase = true;
  compare(decay, keras_schedules::exponential_staircase);
}

TEST_CASE("parameters out of range are rejected") {
  CHECK_THROWS_WITH_AS((nn::ExponentialDecay{-1, 4, 0.5f}).check(),
                       "ExponentialDecay.initial_learning_rate is out of range (it is -1). Give a number of 0 or more.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS((nn::ExponentialDecay{0.1f, 0, 0.5f}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::ExponentialDecay{0.1f, 4, 0}).check(), dist::InvalidArgument);
}
