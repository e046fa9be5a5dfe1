#include <dist/nn/optimizers/with.hpp>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>

namespace nn = dist::nn;

static_assert(nn::OptimizerFunction<nn::With<nn::Adam, nn::ClipValue>>);
static_assert(nn::has_option<nn::With<nn::Adam, nn::ClipValue, nn::WeightDecay>, nn::WeightDecay>);
static_assert(!nn::has_option<nn::With<nn::Adam, nn::ClipValue>, nn::WeightDecay>);
static_assert(!nn::has_option<nn::Adam, nn::WeightDecay>);

TEST_CASE("the optimizer is still one, with its own fields") {
  nn::With optimizer{nn::Adam{.learning_rate = 0.5f}, nn::WeightDecay{0.25f}, nn::AverageWeights{}};
  CHECK(optimizer.name == "Adam");
  CHECK(optimizer.learning_rate == 0.5f);
  optimizer.learning_rate = 0.25f;
  CHECK(optimizer.get<nn::WeightDecay>().rate == 0.25f);
  CHECK_NOTHROW(optimizer.check());
  CHECK_THROWS_AS((nn::With{nn::Adam{.learning_rate = -1}, nn::WeightDecay{}}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::With{nn::Adam{}, nn::WeightDecay{-1}}).check(), dist::InvalidArgument);
}

TEST_CASE("clipping, decay, update and average come in that order (spec P10, P11)") {
  const nn::With optimizer{nn::SGD{.learning_rate = 0.5f},
                           nn::AverageWeights{.momentum = 0.75f, .overwrite_frequency = 3}, nn::WeightDecay{0.5f},
                           nn::ClipValue{1.0f}};
  double weight = 8;
  double slots[2] = {};
  const auto step = [&](std::int64_t iteration, double gradient) {
    optimizer.with_update<double>(iteration, [&](auto update) {
      REQUIRE(update.slots.size() == 1);
      CHECK(update.slots[0] == "average");
      weight = update(weight, gradient, slots);
    });
  };
  step(1, 10);
  CHECK(weight == 8 - 2 - 0.5);  // decay 0.25 * 8, then 0.5 * the cut gradient
  CHECK(slots[0] == 5.5);        // the first average is the weight
  step(2, -0.5);
  CHECK(weight == 5.5 - 1.375 + 0.25);
  CHECK(slots[0] == 0.75 * 5.5 + 0.25 * 4.375);
  step(3, 0);
  CHECK(slots[0] == 0.75 * (0.75 * 5.5 + 0.25 * 4.375) + 0.25 * (0.75 * 4.375));
  CHECK(weight == slots[0]);  // the third update overwrites
}

TEST_CASE("slots of the optimizer come first, the average last (spec P13)") {
  const nn::With optimizer{nn::Adam{.amsgrad = true}, nn::AverageWeights{}};
  optimizer.with_update<float>(1, [](auto update) {
    REQUIRE(update.slots.size() == 4);
    CHECK(update.slots[0] == "momentum");
    CHECK(update.slots[2] == "velocity_max");
    CHECK(update.slots[3] == "average");
  });
}

TEST_CASE("a gradient that is no number stays none") {
  const nn::With optimizer{nn::SGD{}, nn::ClipValue{1.0f}};
  optimizer.with_update<float>(1, [](auto update) {
    CHECK(std::isnan(update(1.0f, std::numeric_limits<float>::quiet_NaN(), nullptr)));
    CHECK(update(1.0f, std::numeric_limits<float>::infinity(), nullptr) == 1.0f - 0.01f);
  });
}
