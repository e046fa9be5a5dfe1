#include <dist/nn/losses/regression.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

TEST_CASE("values and gradients agree with Keras, and gradients with finite differences") {
  keras_losses::compare(nn::Huber{}, keras_losses::huber);
  keras_losses::compare(nn::Huber{.delta = 2.5f}, keras_losses::huber_wide);
}

TEST_CASE("the loss is linear beyond delta, on both sides, and NaN stays NaN") {
  const nn::Huber loss{.delta = 2};
  CHECK(loss.element(2.0, 0.0) == 2);
  CHECK(loss.element(3.0, 0.0) == 4);
  CHECK(loss.element(-3.0, 0.0) == 4);
  CHECK(loss.slope(3.0, 0.0) == 2);
  CHECK(loss.slope(-3.0, 0.0) == -2);
  CHECK(loss.slope(1.5, 0.0) == 1.5);
  CHECK(std::isnan(loss.slope(NAN, 2.0F)));
}

TEST_CASE("delta and shapes are checked") {
  keras_losses::Batch<double, double> batch{keras_losses::huber};
  CHECK_THROWS_WITH_AS(batch.loss(nn::Huber{.delta = 0}),
                       "huber.delta is out of range (it is 0). Give a finite number above 0.", dist::InvalidArgument);
  batch.targets.resize(dist::Shape{4, 2});
  CHECK_THROWS_AS(batch.loss(nn::Huber{}), dist::ShapeMismatch);
}
