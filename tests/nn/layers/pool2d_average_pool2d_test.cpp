#include <dist/nn/layers/pool2d.hpp>

#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("AveragePool2D computes means per channel, and drops incomplete windows") {
  dist_test::BoundLayer<nn::AveragePool2D<2>, dist::StaticShape<3, 4, 1>> layer;
  CHECK(layer.forward({1, 2, 3, 4,   //
                       5, 0, -7, 8,  //
                       9, 9, 9, 9}) == List{2, 2});
  CHECK(layer.backward({4, 8}) == List{1, 1, 2, 2, 1, 1, 2, 2, 0, 0, 0, 0});
  dist_test::BoundLayer<nn::AveragePool2D<2>, dist::StaticShape<2, 2, 2>> channels;
  CHECK(channels.forward({1, -1, 2, -2, 3, -3, 6, -6}) == List{3, -3});
}

TEST_CASE("AveragePool2D excludes padding from the mean") {
  dist_test::BoundLayer<nn::AveragePool2D<2, 2, nn::Same>, dist::StaticShape<3, 3, 1>> layer;
  CHECK(layer.forward({1, 2, 3,  //
                       4, 5, 6,  //
                       7, 8, 9}) == List{3, 4.5, 7.5, 9});
  CHECK(layer.backward({4, 8, 2, 7}) == List{1, 1, 4, 1, 1, 4, 1, 1, 7});
}

TEST_CASE("AveragePool2D counts padding as zeros with CountPadding, like PyTorch") {
  dist_test::BoundLayer<nn::AveragePool2D<2, 2, nn::Pad<1>, nn::CountPadding>, dist::StaticShape<2, 2, 1>> layer;
  CHECK(layer.forward({4, 8,  //
                       12, 16}) == List{1, 2, 3, 4});
  CHECK(layer.backward({4, 8, 12, 16}) == List{1, 2, 3, 4});
  dist_test::BoundLayer<nn::AveragePool2D<2, 2, nn::Pad<1>>, dist::StaticShape<2, 2, 1>> excluded;
  CHECK(excluded.forward({4, 8, 12, 16}) == List{4, 8, 12, 16});
}

TEST_CASE("the output shape of AveragePool2D follows from window, stride and padding") {
  CHECK(std::is_same_v<nn::AveragePool2D<2>::On<dist::StaticShape<26, 27, 32>>::Output, dist::StaticShape<13, 13, 32>>);
  CHECK(std::is_same_v<nn::AveragePool2D<3, 2, nn::Same>::On<dist::StaticShape<7, 8, 1>>::Output,
                       dist::StaticShape<4, 4, 1>>);
  CHECK(nn::AveragePool2D<2>::On<dist::StaticShape<4, 4, 1>>::name == "average_pooling2d");
}
