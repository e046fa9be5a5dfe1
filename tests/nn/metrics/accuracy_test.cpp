#include <dist/nn/metrics/accuracy.hpp>

#include <doctest/doctest.h>

#include "nn/keras/compare_metric.hpp"

namespace nn = dist::nn;
namespace keras = keras_metrics;

static_assert(nn::MeasuresRows<nn::BinaryAccuracy> && nn::MetricFunction<nn::BinaryAccuracy>);

TEST_CASE("results agree with Keras, with and without weights, under all strategies (spec P15)") {
  keras::compare(nn::BinaryAccuracy{}, keras::binary_accuracy);
  keras::compare<float>(nn::BinaryAccuracy{.threshold = 0.75f}, keras::binary_accuracy_above);
}

TEST_CASE("an output at the threshold is negative, and a target other than 0 and 1 is never correct") {
  const float outputs[] = {0.5f, 0.75f, 0.75f}, targets[] = {0, 1, 0.5f};
  CHECK(nn::BinaryAccuracy{}.of_row(nn::Row<const float>{outputs, 3}, nn::Row<const float>{targets, 3}) == 2.0 / 3);
}
