#include <dist/nn/losses/regression.hpp>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

TEST_CASE("values and gradients of MeanSquaredLogarithmicError agree with Keras, and gradients with differences") {
  keras_losses::compare(nn::MeanSquaredLogarithmicError{}, keras_losses::mean_squared_logarithmic_error);
}

TEST_CASE("MeanSquaredLogarithmicError raises negative numbers, with slope 0, and NaN stays NaN") {
  const nn::MeanSquaredLogarithmicError loss;
  CHECK(loss.element(std::exp(2.0) - 1, std::exp(5.0) - 1) == doctest::Approx(9).epsilon(1e-14));
  CHECK(loss.element(-3.0, 0.0) == 0);
  CHECK(loss.slope(-3.0, 5.0) == 0);
  CHECK(loss.slope(0.0, 5.0) == 0);
  CHECK(loss.slope(1.0, 3.0) == doctest::Approx(-std::log(2.0)).epsilon(1e-14));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(loss.element(nan, 1.0)));
  CHECK(std::isnan(loss.slope(nan, 1.0)));
}
