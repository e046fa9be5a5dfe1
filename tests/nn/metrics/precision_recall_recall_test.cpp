#include <dist/nn/metrics/precision_recall.hpp>

#include <doctest/doctest.h>

#include "nn/keras/compare_metric.hpp"

namespace nn = dist::nn;
namespace keras = keras_metrics;

TEST_CASE("results agree with Keras, with and without weights, under all strategies (spec P15)") {
  keras::compare(nn::Recall{}, keras::recall);
  keras::compare<float>(nn::Recall{.threshold = 0.75f}, keras::recall_above);
}
