#include <dist/nn/optimizers/lion.hpp>

#include <cmath>
#include <cstddef>
#include <limits>

#include <doctest/doctest.h>

#include "nn/keras/train.hpp"
#include "recurrence.hpp"

namespace nn = dist::nn;

static_assert(nn::OptimizerFunction<nn::Lion>);

namespace {

double reference(const nn::Lion& lion, std::size_t weight) {
  const double beta_1{lion.beta_1};
  const double beta_2{lion.beta_2};
  double w = static_cast<double>(start_weights[weight]);
  double m = 0;
  for (std::size_t step = 0; step < reference_steps; ++step) {
    const double g = gradient_of<double>(weight, step);
    const double direction = beta_1 * m + (1 - beta_1) * g;
    w -= double{lion.learning_rate} * (direction > 0 ? 1 : direction < 0 ? -1 : 0);
    m = beta_2 * m + (1 - beta_2) * g;
  }
  return w;
}

}  // namespace

TEST_CASE("20 steps agree with the formula in double") {
  for (const nn::Lion& lion : {nn::Lion{}, nn::Lion{.learning_rate = 0.125f, .beta_1 = 0.25f, .beta_2 = 0.5f}})
    for (std::size_t weight = 0; weight < 4; ++weight) {
      CHECK(run_functor<double>(lion, weight) == doctest::Approx(reference(lion, weight)).epsilon(1e-12));
      CHECK(double{run_functor<float>(lion, weight)} == doctest::Approx(reference(lion, weight)).epsilon(2e-6));
    }
}

TEST_CASE("10 steps agree with Keras, also with options") {
  keras_optimizers::compare(nn::Lion{.learning_rate = 0.01f}, keras_optimizers::lion);
  keras_optimizers::compare(nn::With{nn::Lion{.learning_rate = 0.01f, .beta_1 = 0.5f, .beta_2 = 0.75f},
                                     nn::WeightDecay{.rate = 0.25f}, nn::GlobalClipNorm{2.0f}},
                            keras_optimizers::lion_with_options);
}

TEST_CASE("weights move by the learning rate, or not at all without a direction, and NaN stays NaN") {
  const auto step = [](float gradient) {
    float weight = 0.5f;
    float slots[1] = {};
    nn::Lion{.learning_rate = 0.125f}.with_update<float>(
        1, [&](auto update) { weight = update(weight, gradient, slots); });
    return weight;
  };
  CHECK(step(1e-30f) == 0.375f);
  CHECK(step(-1e30f) == 0.625f);
  CHECK(step(0) == 0.5f);
  CHECK(std::isnan(step(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("defaults are Keras', and ranges are checked") {
  const nn::Lion lion;
  CHECK(lion.learning_rate == 1e-3f);
  CHECK(lion.beta_1 == 0.9f);
  CHECK(lion.beta_2 == 0.99f);
  CHECK_NOTHROW(lion.check());
  CHECK_THROWS_AS((nn::Lion{.learning_rate = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Lion{.beta_1 = 1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Lion{.beta_2 = -0.5f}).check(), dist::InvalidArgument);
}
