#include <dist/nn/optimizers/options.hpp>

#include <cmath>

#include <doctest/doctest.h>

namespace nn = dist::nn;

static_assert(nn::is_clipping<nn::ClipNorm> && !nn::is_clipping<nn::WeightDecay>);
static_assert(nn::is_optimizer_option<nn::AccumulateGradients> && !nn::is_optimizer_option<int>);

TEST_CASE("options have ranges (spec P10, P11)") {
  CHECK_NOTHROW(nn::ClipValue{0.5f}.check());
  CHECK_THROWS_AS(nn::ClipValue{0.0f}.check(), dist::InvalidArgument);
  CHECK_THROWS_AS(nn::ClipNorm{-1.0f}.check(), dist::InvalidArgument);
  CHECK_THROWS_AS(nn::GlobalClipNorm{NAN}.check(), dist::InvalidArgument);
  CHECK_NOTHROW(nn::WeightDecay{.rate = 0}.check());
  CHECK_THROWS_AS(nn::WeightDecay{.rate = -0.1f}.check(), dist::InvalidArgument);
  CHECK_NOTHROW(nn::AverageWeights{.momentum = 1}.check());
  CHECK_THROWS_WITH_AS(nn::AverageWeights{.momentum = 1.5f}.check(),
                       "AverageWeights.momentum is out of range (it is 1.5). Give a number from 0 to 1.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(nn::AverageWeights{.momentum = NAN}.check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::AverageWeights{.momentum = 0.5f, .overwrite_frequency = -1}.check()), dist::InvalidArgument);
  CHECK_NOTHROW(nn::AccumulateGradients{1}.check());
  CHECK_THROWS_WITH_AS(nn::AccumulateGradients{0}.check(),
                       "AccumulateGradients.steps is out of range (it is 0). Give the number of calls that make up an "
                       "update, 1 or more.",
                       dist::InvalidArgument);
}

TEST_CASE("defaults are those of Keras (spec P11)") {
  CHECK(nn::AverageWeights{}.momentum == 0.99f);
  CHECK(nn::AverageWeights{}.overwrite_frequency == 0);
  CHECK(nn::WeightDecay{}.rate == 0.004f);  // AdamW's
}

TEST_CASE("parameters are left out of the decay by a part of their name (spec P11)") {
  CHECK(nn::WeightDecay{}.applies_to("dense/bias"));
  const nn::WeightDecay decay{.exclude = {"bias", "conv2d_1/"}};
  CHECK(!decay.applies_to("dense/bias"));
  CHECK(!decay.applies_to("conv2d_1/kernel"));
  CHECK(decay.applies_to("conv2d/kernel"));
}
