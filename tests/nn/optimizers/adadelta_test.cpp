#include <dist/nn/optimizers/adadelta.hpp>

#include <cmath>
#include <cstddef>
#include <limits>

#include <doctest/doctest.h>

#include "nn/keras/train.hpp"
#include "recurrence.hpp"

namespace nn = dist::nn;

static_assert(nn::OptimizerFunction<nn::Adadelta>);

namespace {

double reference(const nn::Adadelta& adadelta, std::size_t weight) {
  const double rho{adadelta.rho}, epsilon{adadelta.epsilon};
  double w = static_cast<double>(start_weights[weight]);
  double squares = 0, steps = 0;
  for (std::size_t step = 0; step < reference_steps; ++step) {
    const double g = gradient_of<double>(weight, step);
    squares = rho * squares + (1 - rho) * g * g;
    const double move = std::sqrt(steps + epsilon) / std::sqrt(squares + epsilon) * g;
    steps = rho * steps + (1 - rho) * move * move;
    w -= double{adadelta.learning_rate} * move;
  }
  return w;
}

float step(const nn::Adadelta& adadelta, float gradient) {
  float weight = 0.5f;
  float slots[2] = {};
  adadelta.with_update<float>(1, [&](auto update) { weight = update(weight, gradient, slots); });
  return weight;
}

}  // namespace

TEST_CASE("20 steps of Adadelta agree with the formula in double") {
  for (const nn::Adadelta& adadelta : {nn::Adadelta{}, nn::Adadelta{.learning_rate = 1, .rho = 0.5f, .epsilon = 1e-3f}})
    for (std::size_t weight = 0; weight < 4; ++weight) {
      CHECK(run_functor<double>(adadelta, weight) == doctest::Approx(reference(adadelta, weight)).epsilon(1e-12));
      CHECK(double{run_functor<float>(adadelta, weight)} == doctest::Approx(reference(adadelta, weight)).epsilon(5e-6));
    }
}

TEST_CASE("10 steps of Adadelta agree with Keras") {
  keras_optimizers::compare(nn::Adadelta{.learning_rate = 1}, keras_optimizers::adadelta);
}

TEST_CASE("overflow and zero gradients do not move the weight under Adadelta, and NaN stays NaN") {
  CHECK(step({}, 3e19f) == 0.5f);
  CHECK(step({}, 0.0f) == 0.5f);
  CHECK(std::isnan(step({}, std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("defaults of Adadelta are Keras', and ranges are checked") {
  const nn::Adadelta adadelta;
  CHECK(adadelta.learning_rate == 1e-3f);
  CHECK(adadelta.rho == 0.95f);
  CHECK(adadelta.epsilon == 1e-7f);
  CHECK_NOTHROW(adadelta.check());
  CHECK_THROWS_AS((nn::Adadelta{.learning_rate = -1}).check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Adadelta{.rho = 1}).check(), dist::InvalidArgument);
  CHECK_THROWS_WITH_AS((nn::Adadelta{.epsilon = 0}).check(),
                       "Adadelta.epsilon is out of range (it is 0). Give a finite number above 0.",
                       dist::InvalidArgument);
}
