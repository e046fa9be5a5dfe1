#include <dist/nn/losses/regression.hpp>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

TEST_CASE("values and gradients of Poisson agree with Keras, and gradients with finite differences") {
  keras_losses::compare(nn::Poisson{}, keras_losses::poisson);
}

TEST_CASE("Poisson is least where the output is the target, and NaN for negative outputs") {
  const nn::Poisson loss;
  CHECK(loss.slope(3.0, 3.0) == doctest::Approx(0).scale(1).epsilon(1e-7));
  CHECK(loss.element(3.0, 3.0) < loss.element(2.9, 3.0));
  CHECK(loss.element(3.0, 3.0) < loss.element(3.1, 3.0));
  CHECK(loss.element(0.0, 0.0) == 0);
  CHECK(std::isnan(loss.element(-1.0, 1.0)));
  CHECK(std::isnan(loss.slope(std::numeric_limits<double>::quiet_NaN(), 1.0)));
}
