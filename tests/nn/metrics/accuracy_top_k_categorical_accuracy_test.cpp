#include <dist/nn/metrics/accuracy.hpp>

#include <doctest/doctest.h>

#include "nn/keras/compare_metric.hpp"

namespace nn = dist::nn;
namespace keras = keras_metrics;

TEST_CASE("results agree with Keras, with and without weights, under all strategies (spec P15)") {
  keras::compare(nn::TopKCategoricalAccuracy{.k = 2}, keras::top_2);
}

TEST_CASE("the accuracy is 1 if k is at least the number of classes") {
  const float outputs[] = {3, 2, 1}, targets[] = {0, 0, 1};
  const nn::Row<const float> row{outputs, 3}, target{targets, 3};
  CHECK(nn::TopKCategoricalAccuracy{}.of_row(row, target) == 1);
  CHECK(nn::TopKCategoricalAccuracy{.k = 2}.of_row(row, target) == 0);
}
