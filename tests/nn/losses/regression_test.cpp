#include <dist/nn/losses/regression.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

TEST_CASE("values and gradients agree with Keras, and gradients with finite differences") {
  keras_losses::compare(nn::MeanAbsoluteError{}, keras_losses::mean_absolute_error);
}

TEST_CASE("the slope is 0 where outputs equal targets, and NaN stays NaN") {
  const nn::MeanAbsoluteError loss;
  CHECK(loss.slope(2.0F, 2.0F) == 0);
  CHECK(loss.slope(3.0F, 2.0F) == 1);
  CHECK(loss.slope(1.0F, 2.0F) == -1);
  CHECK(std::isnan(loss.slope(NAN, 2.0F)));
}
