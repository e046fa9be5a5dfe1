#include <dist/nn/layers/pool2d.hpp>

#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("GlobalAveragePool2D computes the mean of each channel, and divides the gradient among the pixels") {
  using In = dist::StaticShape<2, 2, 2>;
  CHECK(std::is_same_v<nn::GlobalAveragePool2D::On<In>::Output, dist::StaticShape<2>>);
  CHECK(nn::GlobalAveragePool2D::On<In>::name == "global_average_pooling2d");
  dist_test::BoundLayer<nn::GlobalAveragePool2D, In> layer;
  CHECK(layer.forward({1, 10, 2, 20, 3, 30, 6, 60, 0, 0, 0, 0, 0, 0, 4, 8}) == List{3, 30, 1, 2});
  CHECK(layer.backward({4, 8, 0, 16}) == List{1, 2, 1, 2, 1, 2, 1, 2, 0, 4, 0, 4, 0, 4, 0, 4});
}
