#include <dist/nn/metrics/precision_recall.hpp>

#include <doctest/doctest.h>

#include "nn/keras/compare_metric.hpp"

namespace nn = dist::nn;
namespace keras = keras_metrics;

static_assert(nn::CountingMetric<nn::Precision> && nn::MetricFunction<nn::Precision>);

TEST_CASE("results agree with Keras, with and without weights, under all strategies (spec P15)") {
  keras::compare(nn::Precision{}, keras::precision);
  keras::compare<float>(nn::Precision{.threshold = 0.75f}, keras::precision_above);
}
