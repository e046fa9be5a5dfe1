#include <dist/nn/metrics/auc.hpp>

#include <cmath>
#include <cstddef>

#include <doctest/doctest.h>

#include "nn/keras/compare_metric.hpp"

namespace nn = dist::nn;
namespace keras = keras_metrics;

TEST_CASE("results agree with Keras, with and without weights, under all strategies (spec P15)") {
  keras::compare(nn::Auc{}, keras::auc);
  keras::compare(nn::Auc{.thresholds = 5}, keras::auc_of_5);
  keras::compare(nn::Auc{.curve = nn::Auc::Curve::pr}, keras::pr_auc);
  keras::compare(nn::Auc{.thresholds = 5, .curve = nn::Auc::Curve::pr}, keras::pr_auc_of_5);
}

TEST_CASE("logits are converted to probabilities") {
  keras::Batch<double, double> batch{keras::auc_of_logits};
  dist::Default strategy;
  nn::Metric metric{strategy, nn::Auc{.from_logits = true}};
  metric.update(strategy.scope(), batch.outputs, batch.targets, batch.sample_weights);
  CHECK(metric.result(strategy.scope()) == doctest::Approx(keras::auc_of_logits.weighted_result).epsilon(1e-12));
}

TEST_CASE("numbers outside of 0 to 1 are clipped, and NaN counts as 0") {
  const auto cell = [](float output) {
    const int target = 0;
    std::size_t found = 99;
    nn::Auc{.thresholds = 11}.for_each_bin(nn::Row<const float>{&output, 1}, nn::Row<const int>{&target, 1},
                                           [&](std::size_t one) { found = one; });
    return found;
  };
  CHECK(cell(0) == 0);
  CHECK(cell(-5) == 0);
  CHECK(cell(NAN) == 0);
  CHECK(cell(0.05f) == 0);
  CHECK(cell(0.15f) == 1);
  CHECK(cell(0.5f) == 4);  // not above the threshold 0.5
  CHECK(cell(1) == 9);
  CHECK(cell(INFINITY) == 9);
}

TEST_CASE("perfect predictions have area 1, and at least 2 thresholds are required") {
  dist::Default strategy;
  dist::Tensor<float> outputs{dist::Shape{4, 1}}, targets{dist::Shape{4}};
  for (std::size_t i = 0; i < 4; ++i) outputs[i] = i < 2 ? 0.25f : 0.75f, targets[i] = i < 2 ? 0.0f : 1.0f;
  nn::Metric metric{strategy, nn::Auc{.thresholds = 3}};
  metric.update(strategy.scope(), outputs, targets);
  CHECK(metric.result(strategy.scope()) == 1);
  CHECK(metric.counts(strategy.scope()).shape() == dist::Shape{2, 3});
  CHECK_THROWS_WITH_AS((nn::Metric{strategy, nn::Auc{.thresholds = 1}}),
                       "Auc.thresholds is out of range (it is 1). Give a number of thresholds, 2 or more, such as 200.",
                       dist::InvalidArgument);
}
