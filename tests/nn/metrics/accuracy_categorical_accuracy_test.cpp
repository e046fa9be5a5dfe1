#include <dist/nn/metrics/accuracy.hpp>

#include <doctest/doctest.h>

#include "nn/keras/compare_metric.hpp"

namespace nn = dist::nn;
namespace keras = keras_metrics;

TEST_CASE("results agree with Keras, with and without weights, under all strategies (spec P15)") {
  keras::compare(nn::CategoricalAccuracy{}, keras::categorical_accuracy);
}

TEST_CASE("CategoricalAccuracy requires one row of classes per example") {
  dist::Default strategy;
  nn::Metric metric{strategy, nn::CategoricalAccuracy{.name = "right"}};
  CHECK(metric.name() == "right");
  const dist::Tensor<float> outputs{dist::Shape{4, 3}}, targets{dist::Shape{4}};
  CHECK_THROWS_WITH_AS(
      metric.update(strategy.scope(), outputs, targets),
      "right got targets that do not fit the outputs (outputs [4, 3], targets [4]). Give one row of 3 elements for "
      "each example, or use a loss or metric whose member check(outputs, targets) accepts these.",
      dist::ShapeMismatch);
}
