#include <dist/nn/layers/group_normalization.hpp>

#include <cmath>
#include <vector>

#include <dist/core/static_shape.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

namespace {

struct Small : nn::LayerNormalizationOptions {
  static constexpr double epsilon = 1e-12;
};

}  // namespace

TEST_CASE("LayerNormalization normalises along the last axis, then applies gamma and beta") {
  using In = dist::StaticShape<2, 2>;
  dist_test::BoundLayer<nn::LayerNormalization<Small>, In> layer;
  const List y = layer.forward({1, 3, 1e6 + 10, 1e6 - 10}, {{2, 5}, {100, 200}});
  const List expected{-2 + 100, 5 + 200, 2 + 100, -5 + 200};
  for (std::size_t i = 0; i < 4; ++i) CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-9));
  CHECK(nn::LayerNormalization<>::On<In>::name == "layer_normalization");
  CHECK(nn::LayerNormalization<>::On<In>::parameters[0].shape == dist::Shape{2});
  // A row of two elements is always normalised to -1 and 1, so it has no gradient.
  const List dx = layer.backward({1, 2, 3, 4});
  for (const double slope : dx) CHECK(std::abs(slope) < 1e-6);
  CHECK(layer.gradients[0][0] == doctest::Approx(-1 + 3));
  CHECK(layer.gradients[0][1] == doctest::Approx(2 - 4));
  CHECK(layer.gradients[1] == List{4, 6});
}

TEST_CASE("LayerNormalization adds epsilon inside the square root") {
  dist_test::BoundLayer<nn::LayerNormalization<>, dist::StaticShape<2>> layer;
  CHECK(layer.forward({-1, 1}, {{1, 1}, {0, 0}})[1] == doctest::Approx(1 / std::sqrt(1.001)));
}
