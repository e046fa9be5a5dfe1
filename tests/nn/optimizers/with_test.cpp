#include <dist/nn/optimizers/with.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <doctest/doctest.h>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/schedules/decays.hpp>

namespace nn = dist::nn;

static_assert(nn::OptimizerFunction<nn::With<nn::Adam, nn::ClipValue>>);
static_assert(nn::has_option<nn::With<nn::Adam, nn::ClipValue, nn::WeightDecay>, nn::WeightDecay>);
static_assert(!nn::has_option<nn::With<nn::Adam, nn::ClipValue>, nn::WeightDecay>);
static_assert(!nn::has_option<nn::Adam, nn::WeightDecay>);

TEST_CASE("With is an optimizer with the fields of its base") {
  nn::With optimizer{nn::Adam{.learning_rate = 0.5f}, nn::WeightDecay{0.25f}, nn::AverageWeights{}};
  CHECK(optimizer.name == "Adam");
  CHECK(optimizer.learning_rate == 0.5f);
  optimizer.learning_rate = 0.25f;
  CHECK(optimizer.get<nn::WeightDecay>().rate == 0.25f);
  CHECK_NOTHROW(optimizer.check());
  CHECK_THROWS_AS((nn::With{nn::Adam{.learning_rate = -1}, nn::WeightDecay{}}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::With{nn::Adam{}, nn::WeightDecay{-1}}).check(), dist::InvalidArgument);
}

TEST_CASE("clipping, decay, update and average are applied in this order (spec P10, P11)") {
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
  CHECK(weight == 8 - 2 - 0.5);  // decay 0.25 * 8, then 0.5 * the clipped gradient
  CHECK(slots[0] == 5.5);        // the first average is the weight
  step(2, -0.5);
  CHECK(weight == 5.5 - 1.375 + 0.25);
  CHECK(slots[0] == 0.75 * 5.5 + 0.25 * 4.375);
  step(3, 0);
  CHECK(slots[0] == 0.75 * (0.75 * 5.5 + 0.25 * 4.375) + 0.25 * (0.75 * 4.375));
  CHECK(weight == slots[0]);  // the third update overwrites
}

TEST_CASE("slots of the optimizer are first, the average is last (spec P13)") {
  const nn::With optimizer{nn::Adam{.amsgrad = true}, nn::AverageWeights{}};
  optimizer.with_update<float>(1, [](auto update) {
    REQUIRE(update.slots.size() == 4);
    CHECK(update.slots[0] == "momentum");
    CHECK(update.slots[2] == "velocity_max");
    CHECK(update.slots[3] == "average");
  });
}

TEST_CASE("a gradient of NaN stays NaN") {
  const nn::With optimizer{nn::SGD{}, nn::ClipValue{1.0f}};
  optimizer.with_update<float>(1, [](auto update) {
    CHECK(std::isnan(update(1.0f, std::numeric_limits<float>::quiet_NaN(), nullptr)));
    CHECK(update(1.0f, std::numeric_limits<float>::infinity(), nullptr) == 1.0f - 0.01f);
  });
}

TEST_CASE("a schedule sets the rate of each update, and of the decay") {
  const nn::With optimizer{nn::SGD{.learning_rate = 100}, nn::WeightDecay{0.5f},
                           [](std::int64_t step) { return 0.25 * static_cast<double>(step + 1); }};
  static_assert(nn::has_schedule<std::remove_const_t<decltype(optimizer)>> && !nn::has_schedule<nn::SGD> &&
                !nn::has_schedule<nn::With<nn::SGD, nn::WeightDecay>>);
  CHECK_NOTHROW(optimizer.check());
  CHECK(optimizer.learning_rate_of(0) == 0.25f);
  CHECK(optimizer.learning_rate_of(3) == 1.0f);
  double weight = 8;
  const auto step = [&](std::int64_t iteration, double gradient) {
    optimizer.with_update<double>(iteration, [&](auto update) { weight = update(weight, gradient, nullptr); });
  };
  step(1, 2);
  CHECK(weight == 8 - 0.5 * 0.25 * 8 - 0.25 * 2);
  step(2, 2);
  CHECK(weight == 6.5 - 0.5 * 0.5 * 6.5 - 0.5 * 2);
}

TEST_CASE("a schedule and all its rates are checked") {
  CHECK_THROWS_AS((nn::With{nn::Adam{}, nn::ExponentialDecay{0.1f, 0, 0.5f}}).check(), dist::InvalidArgument);
  const nn::With optimizer{nn::Adam{}, [](std::int64_t step) { return 1.0 - static_cast<double>(step); }};
  CHECK_NOTHROW(optimizer.check());
  CHECK(optimizer.learning_rate_of(1) == 0);
  CHECK_THROWS_WITH_AS(static_cast<void>(optimizer.learning_rate_of(2)),
                       "Adam.learning_rate is out of range (it is -1). Give a number of 0 or more.",
                       dist::InvalidArgument);
}
