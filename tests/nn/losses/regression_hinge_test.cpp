#include <dist/nn/losses/regression.hpp>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

TEST_CASE("values and gradients agree with Keras, and gradients with finite differences") {
  keras_losses::compare(nn::Hinge{}, keras_losses::hinge);
  keras_losses::compare(nn::Hinge{}, keras_losses::hinge_of_signs);
}

TEST_CASE("targets 0 and -1 are negative, and the slope at the margin is Keras'") {
  const nn::Hinge loss;
  CHECK(loss.element(0.5, 0.0) == loss.element(0.5, -1.0));
  CHECK(loss.element(0.5, 0.0) == 1.5);
  CHECK(loss.element(0.5, 1.0) == 0.5);
  CHECK(loss.element(1.5, 1.0) == 0);
  CHECK(loss.slope(1.0, 1.0) == -1);
  CHECK(loss.slope(-1.0, 0.0) == 1);
  CHECK(loss.slope(1.5, 1.0) == 0);
  CHECK(std::isnan(loss.slope(std::numeric_limits<double>::quiet_NaN(), 1.0)));
}
