#include <dist/nn/losses/categorical_crossentropy.hpp>

#include <cmath>

#include <dist/core/tensor.hpp>
#include <dist/nn/losses/cosine_similarity.hpp>
#include <dist/nn/losses/kl_divergence.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

TEST_CASE("values and gradients agree with Keras, and gradients with finite differences") {
  namespace keras = keras_losses;
  keras::compare(nn::CategoricalCrossentropy{}, keras::categorical_logits);
  keras::compare(nn::CategoricalCrossentropy{.label_smoothing = 0.1f}, keras::categorical_logits_smoothed);
}

TEST_CASE("losses of probabilities agree with Keras") {
  namespace keras = keras_losses;
  keras::compare(nn::CategoricalCrossentropy{.from_logits = false}, keras::categorical_probabilities);
  keras::compare(nn::CategoricalCrossentropy{.from_logits = false, .label_smoothing = 0.1f},
                 keras::categorical_probabilities_smoothed);
}

TEST_CASE("integer labels are rejected, and the message names the loss for them") {
  keras_losses::Batch<double, double> batch{keras_losses::categorical_logits};
  batch.targets.resize(dist::Shape{4});
  CHECK_THROWS_WITH_AS(
      batch.loss(nn::CategoricalCrossentropy{}),
      "categorical_crossentropy got one target for each example (outputs [4, 3], targets [4]). Give one row of 3 "
      "elements for each example, or use sparse_categorical_crossentropy for class numbers.",
      dist::ShapeMismatch);
  batch.targets.resize(dist::Shape{4, 2});
  CHECK_THROWS_AS(batch.loss(nn::CategoricalCrossentropy{}), dist::ShapeMismatch);
  CHECK_THROWS_AS(batch.loss(nn::CategoricalCrossentropy{.label_smoothing = -1}), dist::InvalidArgument);
}

TEST_CASE("a class with target 0 may have a logit of -infinity") {
  const nn::CategoricalCrossentropy loss;
  const float logits[] = {1, -INFINITY, 1}, targets[] = {1, 0, 0};
  float gradient[3];
  const float value = loss.per_example(nn::Row<const float>{logits, 3}, nn::Row<const float>{targets, 3}, 1.0F,
                                       nn::Row<float>{gradient, 3});
  CHECK(static_cast<double>(value) == doctest::Approx(std::log(2.0)));
  CHECK(gradient[0] == -0.5F);
  CHECK(gradient[1] == 0);
}

TEST_CASE("outputs with more axes have an example per row of the last axis, as in Keras") {
  dist::Default strategy;
  const dist::Tensor<double> values{{1, 2, 3}, {0.5, -1, 2, 3, 0, 1}}, targets{{1, 2, 3}, {0, 1, 0, 0.5, 0, 0.5}};
  const dist::Tensor<double> flat{{2, 3}, {0.5, -1, 2, 3, 0, 1}}, flat_targets{{2, 3}, {0, 1, 0, 0.5, 0, 0.5}};
  dist::Tensor<double> gradient{{1, 2, 3}}, flat_gradient{{2, 3}};
  const auto compute = [&](const auto& loss, const auto& x, auto& slopes, const auto& y) {
    const nn::Outputs<double> outputs{x.view(), slopes.view()};
    return strategy.run([&](auto& replica) { return nn::compute_loss(loss, replica, outputs, y, 2); });
  };
  const auto check = [&](const auto& loss) {
    const auto found = compute(loss, values, gradient, targets);
    CHECK(found.examples() == 2);
    CHECK(found.value() == compute(loss, flat, flat_gradient, flat_targets).value());
    for (std::size_t i = 0; i < 6; ++i) CHECK(gradient[i] == flat_gradient[i]);
  };
  check(nn::CategoricalCrossentropy{});
  check(nn::CosineSimilarity{});
  check(nn::KlDivergence{});
}
