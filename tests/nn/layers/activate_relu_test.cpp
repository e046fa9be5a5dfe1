#include <dist/nn/layers/activate.hpp>

#include <vector>

#include <dist/core/static_shape.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

using List = std::vector<double>;

TEST_CASE("ReLU computes the forward and backward pass as a layer") {
  dist_test::BoundLayer<dist::nn::ReLU, dist::StaticShape<2, 2>> layer;
  CHECK(layer.forward({-1, 2, 0, 4}) == List{0, 2, 0, 4});
  CHECK(layer.backward({10, 20, 30, 40}) == List{0, 20, 0, 40});
}
