#include <dist/nn/schedules/decays.hpp>

#include <doctest/doctest.h>
#include <dist/core/error.hpp>

#include "compare.hpp"

namespace nn = dist::nn;

static_assert(nn::LearningRateSchedule<nn::CosineDecay>);

TEST_CASE("each step has Keras' rate") {
  compare(nn::CosineDecay{.initial_learning_rate = 0.1f, .decay_steps = 8}, keras_schedules::cosine_decay);
  compare(nn::CosineDecay{.initial_learning_rate = 0.1f, .decay_steps = 8, .alpha = 0.1f},
          keras_schedules::cosine_decay_to_alpha);
}

TEST_CASE("parameters out of range are rejected") {
  CHECK_THROWS_AS((nn::CosineDecay{-1, 8}).check(), dist::InvalidArgument);
  CHECK_THROWS_WITH_AS((nn::CosineDecay{0.1f, 0}).check(),
                       "CosineDecay.decay_steps is out of range (it is 0). Give a number of steps, 1 or more.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS((nn::CosineDecay{0.1f, 8, -1}).check(), dist::InvalidArgument);
}
