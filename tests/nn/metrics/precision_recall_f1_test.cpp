#include <dist/nn/metrics/precision_recall.hpp>

#include <doctest/doctest.h>

#include "nn/keras/compare_metric.hpp"

namespace nn = dist::nn;
namespace keras = keras_metrics;

TEST_CASE("results agree with Keras, whose epsilon is 1e-7, with and without weights (spec P15)") {
  keras::Batch<double, double> batch{keras::f1};
  dist::Default strategy;
  nn::Metric metric{strategy, nn::F1{}};
  metric.update(strategy.scope(), batch.outputs, batch.targets);
  CHECK(metric.result(strategy.scope()) == doctest::Approx(keras::f1.result).epsilon(2e-7));
  metric.reset(strategy.scope());
  metric.update(strategy.scope(), batch.outputs, batch.targets, batch.sample_weights);
  CHECK(metric.result(strategy.scope()) == doctest::Approx(keras::f1.weighted_result).epsilon(2e-7));
}

TEST_CASE("F1 is the harmonic mean of precision and recall, under all strategies") {
  for (const keras::Case* of : {&keras::precision, &keras::auc_of_logits}) {
    keras::Case both = *of;
    dist::Default strategy;
    const auto result = [&](auto measure, bool is_weighted) {
      keras::Batch<double, double> batch{both};
      nn::Metric metric{strategy, measure};
      if (is_weighted)
        metric.update(strategy.scope(), batch.outputs, batch.targets, batch.sample_weights);
      else
        metric.update(strategy.scope(), batch.outputs, batch.targets);
      return metric.result(strategy.scope());
    };
    const auto mean = [&](bool is_weighted) {
      const double p = result(nn::Precision{}, is_weighted), r = result(nn::Recall{}, is_weighted);
      return 2 * p * r / (p + r);
    };
    both.result = mean(false);
    both.weighted_result = mean(true);
    keras::compare(nn::F1{}, both);
  }
}
