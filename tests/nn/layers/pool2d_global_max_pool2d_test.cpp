#include <dist/nn/layers/pool2d.hpp>

#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("GlobalMaxPool2D computes the maximum of each channel, and passes the gradient to the first maximum") {
  using In = dist::StaticShape<2, 2, 2>;
  CHECK(std::is_same_v<nn::GlobalMaxPool2D::On<In>::Output, dist::StaticShape<2>>);
  CHECK(nn::GlobalMaxPool2D::On<In>::name == "global_max_pooling2d");
  dist_test::BoundLayer<nn::GlobalMaxPool2D, In> layer;
  CHECK(layer.forward({1, 70, 2, 20, 3, 30, 3, 60, -2, -4, -1, -3, -5, -3, -6, -9}) == List{3, 70, -1, -3});
  CHECK(layer.backward({4, 8, 5, 6}) == List{0, 8, 0, 0, 4, 0, 0, 0, 0, 0, 5, 6, 0, 0, 0, 0});
}
