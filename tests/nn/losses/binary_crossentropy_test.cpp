#include <dist/nn/losses/binary_crossentropy.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

TEST_CASE("values and gradients agree with Keras, and gradients with finite differences") {
  namespace keras = keras_losses;
  keras::compare(nn::BinaryCrossentropy{}, keras::binary_logits);
  keras::compare(nn::BinaryCrossentropy{.label_smoothing = 0.2f}, keras::binary_logits_smoothed);
}

TEST_CASE("losses of probabilities agree with Keras") {
  namespace keras = keras_losses;
  keras::compare(nn::BinaryCrossentropy{.from_logits = false}, keras::binary_probabilities);
  keras::compare(nn::BinaryCrossentropy{.from_logits = false, .label_smoothing = 0.2f},
                 keras::binary_probabilities_smoothed);
}

TEST_CASE("huge and tiny losses are precise") {
  const nn::BinaryCrossentropy loss;
  CHECK(loss.element(1000.0F, 0.0F) == 1000);
  CHECK(loss.element(-1000.0F, 1.0F) == 1000);
  CHECK(loss.element(1000.0F, 1.0F) == 0);
  CHECK(loss.element(-1000.0F, 0.0F) == 0);
  CHECK(loss.slope(1000.0F, 0.0F) == 1);
  CHECK(loss.slope(-1000.0F, 0.0F) == 0);
  CHECK(static_cast<double>(loss.element(20.0F, 1.0F)) == doctest::Approx(std::exp(-20.0)).epsilon(1e-6));
  CHECK(std::isnan(loss.element(NAN, 1.0F)));
  CHECK(std::isnan(nn::BinaryCrossentropy{.from_logits = false}.element(NAN, 1.0F)));
}

TEST_CASE("a label smoothing out of range is rejected") {
  keras_losses::Batch<double, double> batch{keras_losses::binary_logits};
  CHECK_THROWS_WITH_AS(batch.loss(nn::BinaryCrossentropy{.label_smoothing = 1.5f}),
                       "binary_crossentropy.label_smoothing is out of range (it is 1.5). Give a number from 0 to 1.",
                       dist::InvalidArgument);
}
