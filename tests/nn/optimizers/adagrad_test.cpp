#include <dist/nn/optimizers/adagrad.hpp>

#include <cmath>
#include <cstddef>
#include <limits>

#include <doctest/doctest.h>

#include "nn/keras/train.hpp"
#include "recurrence.hpp"

namespace nn = dist::nn;

static_assert(nn::OptimizerFunction<nn::Adagrad>);

namespace {

double reference(const nn::Adagrad& adagrad, std::size_t weight) {
  double w = static_cast<double>(start_weights[weight]);
  double accumulated{adagrad.initial_accumulator_value};
  for (std::size_t step = 0; step < reference_steps; ++step) {
    const double g = gradient_of<double>(weight, step);
    accumulated += g * g;
    w -= double{adagrad.learning_rate} * g / std::sqrt(accumulated + double{adagrad.epsilon});
  }
  return w;
}

float step(const nn::Adagrad& adagrad, float gradient) {
  float weight = 0.5f;
  float slots[1] = {};
  adagrad.with_update<float>(1, [&](auto update) { weight = update(weight, gradient, slots); });
  return weight;
}

}  // namespace

TEST_CASE("20 steps agree with the formula in double") {
  for (const nn::Adagrad& adagrad :
       {nn::Adagrad{}, nn::Adagrad{.learning_rate = 0.1f, .initial_accumulator_value = 0, .epsilon = 1e-3f}})
    for (std::size_t weight = 0; weight < 4; ++weight) {
      CHECK(run_functor<double>(adagrad, weight) == doctest::Approx(reference(adagrad, weight)).epsilon(1e-12));
      CHECK(double{run_functor<float>(adagrad, weight)} == doctest::Approx(reference(adagrad, weight)).epsilon(5e-6));
    }
}

TEST_CASE("10 steps agree with Keras") {
  keras_optimizers::compare(nn::Adagrad{.learning_rate = 0.1f}, keras_optimizers::adagrad);
}

TEST_CASE("overflow and zero gradients do not move the weight, and NaN stays NaN") {
  CHECK(step({}, 3e19f) == 0.5f);
  CHECK(step({.initial_accumulator_value = 0, .epsilon = 0}, 0.0f) == 0.5f);
  CHECK(step({.initial_accumulator_value = 0, .epsilon = 0}, 1e-20f) == doctest::Approx(0.499).epsilon(1e-6));
  CHECK(std::isnan(step({}, std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("defaults are Keras', and ranges are checked") {
  const nn::Adagrad adagrad;
  CHECK(adagrad.learning_rate == 1e-3f);
  CHECK(adagrad.initial_accumulator_value == 0.1f);
  CHECK(adagrad.epsilon == 1e-7f);
  CHECK_NOTHROW(adagrad.check());
  CHECK_THROWS_AS((nn::Adagrad{.learning_rate = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_WITH_AS((nn::Adagrad{.initial_accumulator_value = -1}).check(),
                       "Adagrad.initial_accumulator_value is out of range (it is -1). Give a number of 0 or more.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Adagrad{.epsilon = -1}).check(), dist::InvalidArgument);
}
