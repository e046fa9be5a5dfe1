#include <dist/nn/layers/softmax.hpp>

#include <cmath>
#include <vector>

#include <dist/core/static_shape.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("Softmax returns a distribution along the last axis, also for large numbers") {
  using In = dist::StaticShape<2, 2>;
  dist_test::BoundLayer<nn::Softmax, In> layer;
  const List y = layer.forward({0, std::log(3.0), 1000, 1000, -1000, 0, std::log(1.0), std::log(4.0)});
  const List expected{0.25, 0.75, 0.5, 0.5, 0, 1, 0.2, 0.8};
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(expected[i]));
  const List dx = layer.backward({4, 8, 1, 1, 5, 7, 0, 10});
  // y * (dy - sum(y * dy)): the sums are 7, 1, 7 and 8.
  const List slopes{0.25 * -3, 0.75 * 1, 0, 0, 0, 0, 0.2 * -8, 0.8 * 2};
  for (std::size_t i = 0; i < dx.size(); ++i) CHECK(dx[i] == doctest::Approx(slopes[i]));
  CHECK(nn::Softmax::On<In>::name == "softmax");
}
