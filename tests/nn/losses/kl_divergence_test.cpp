#include <dist/nn/losses/kl_divergence.hpp>

#include <doctest/doctest.h>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

TEST_CASE("values and gradients agree with Keras, and gradients with finite differences") {
  keras_losses::compare(nn::KlDivergence{}, keras_losses::kl_divergence);
}

TEST_CASE("equal distributions have divergence 0") {
  keras_losses::Case same = keras_losses::kl_divergence;
  same.outputs = same.targets;
  keras_losses::Batch<double, double> batch{same};
  CHECK(batch.loss(nn::KlDivergence{}) == 0);
}
