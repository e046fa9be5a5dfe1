#include <dist/nn/metrics/accuracy.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "nn/keras/compare_metric.hpp"

namespace nn = dist::nn;
namespace keras = keras_metrics;

TEST_CASE("results agree with Keras, with and without weights, under all strategies (spec P15)") {
  keras::compare<std::int32_t>(nn::SparseTopKCategoricalAccuracy{.k = 2}, keras::sparse_top_2);
}

TEST_CASE("ties count as top, and labels out of range and NaN do not") {
  const auto is_right = [](std::vector<float> outputs, std::int8_t label) {
    return nn::SparseTopKCategoricalAccuracy{.k = 2}.of_row(nn::Row<const float>{outputs.data(), outputs.size()},
                                                            nn::Row<const std::int8_t>{&label, 1}) == 1;
  };
  CHECK(is_right({1, 2, 2, 2}, 3));
  CHECK(is_right({1, 2, 3, 0}, 1));
  CHECK(!is_right({1, 2, 3, 0}, 0));
  CHECK(!is_right({1, 2, 3, 0}, 4));
  CHECK(!is_right({1, 2, 3, 0}, -1));
  CHECK(!is_right({1, NAN, 3, 0}, 1));
  CHECK(!is_right({1, INFINITY, 3, 0}, 1));
}
