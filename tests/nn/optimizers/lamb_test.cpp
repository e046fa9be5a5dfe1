#include <dist/nn/optimizers/lamb.hpp>

#include <doctest/doctest.h>

#include "nn/keras/train.hpp"

namespace nn = dist::nn;

static_assert(nn::OptimizerFunction<nn::Lamb> && nn::ScalesByNorms<nn::Lamb>);

TEST_CASE("10 steps agree with Keras, also with options") {
  keras_optimizers::compare(nn::Lamb{.learning_rate = 0.01f}, keras_optimizers::lamb);
  keras_optimizers::compare(
      nn::With{nn::Lamb{.learning_rate = 0.01f, .epsilon = 1e-3f}, nn::WeightDecay{.rate = 0.25f}, nn::ClipNorm{2.0f},
               nn::AverageWeights{.momentum = 0.75f, .overwrite_frequency = 3}},
      keras_optimizers::lamb_with_options);
}

TEST_CASE("defaults are Keras', and ranges are checked") {
  const nn::Lamb lamb;
  CHECK(lamb.learning_rate == 1e-3f);
  CHECK(lamb.beta_1 == 0.9f);
  CHECK(lamb.beta_2 == 0.999f);
  CHECK(lamb.epsilon == 1e-7f);
  CHECK_NOTHROW(lamb.check());
  CHECK_THROWS_AS((nn::Lamb{.learning_rate = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Lamb{.beta_1 = 1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Lamb{.beta_2 = 1}).check(), dist::InvalidArgument);
  CHECK_THROWS_WITH_AS((nn::Lamb{.epsilon = 0}).check(),
                       "Lamb.epsilon is out of range (it is 0). Give a finite number above 0.", dist::InvalidArgument);
}
