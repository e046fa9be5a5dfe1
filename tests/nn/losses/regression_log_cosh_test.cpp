#include <dist/nn/losses/regression.hpp>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

TEST_CASE("values and gradients of LogCosh agree with Keras, and gradients with finite differences") {
  keras_losses::compare(nn::LogCosh{}, keras_losses::log_cosh);
}

TEST_CASE("LogCosh is precise for small differences and finite for large ones, and NaN stays NaN") {
  const nn::LogCosh loss;
  CHECK(loss.element(1e-5, 0.0) == doctest::Approx(0.5e-10).epsilon(1e-4));
  CHECK(loss.element(1000.0F, 0.0F) == doctest::Approx(1000 - std::log(2.0)).epsilon(1e-6));
  CHECK(loss.element(0.0F, 1000.0F) == doctest::Approx(1000 - std::log(2.0)).epsilon(1e-6));
  CHECK(loss.element(2.0, 2.0) == 0);
  CHECK(loss.slope(1000.0F, 0.0F) == 1);
  CHECK(loss.slope(0.0F, 1000.0F) == -1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(loss.element(nan, 0.0)));
  CHECK(std::isnan(loss.slope(0.0, nan)));
}
