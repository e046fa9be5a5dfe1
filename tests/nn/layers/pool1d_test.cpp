#include <dist/nn/layers/pool1d.hpp>

#include <type_traits>
#include <vector>

#include <dist/nn/geometry.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;
using Sequence = dist::StaticShape<4, 2>;

TEST_CASE("MaxPool1D takes the maximum of each window, which receives the gradient") {
  CHECK(std::is_same_v<nn::MaxPool1D<2>::On<dist::StaticShape<5, 2>>::Output, dist::StaticShape<2, 2>>);
  CHECK(nn::MaxPool1D<2>::On<Sequence>::name == "max_pooling1d");
  dist_test::BoundLayer<nn::MaxPool1D<2>, Sequence> layer;
  CHECK(layer.forward({1, 8, 3, 6, 5, 4, 5, 2}, {}) == List{3, 8, 5, 4});
  CHECK(layer.backward({1, 2, 3, 4}) == List{0, 2, 1, 0, 3, 4, 0, 0});
}

TEST_CASE("AveragePool1D divides by the elements of a window, with or without padding") {
  CHECK(nn::AveragePool1D<2>::On<Sequence>::name == "average_pooling1d");
  dist_test::BoundLayer<nn::AveragePool1D<2, 2, nn::Pad<1>>, dist::StaticShape<2, 1>> without;
  CHECK(without.forward({2, 4}, {}) == List{2, 4});
  CHECK(without.backward({1, 3}) == List{1, 3});
  dist_test::BoundLayer<nn::AveragePool1D<2, 2, nn::Pad<1>, nn::CountPadding>, dist::StaticShape<2, 1>> with;
  CHECK(with.forward({2, 4}, {}) == List{1, 2});
  CHECK(with.backward({1, 3}) == List{0.5, 1.5});
}

TEST_CASE("global pools of sequences have one result per channel") {
  CHECK(nn::GlobalAveragePool1D::On<Sequence>::name == "global_average_pooling1d");
  CHECK(nn::GlobalMaxPool1D::On<Sequence>::name == "global_max_pooling1d");
  dist_test::BoundLayer<nn::GlobalAveragePool1D, Sequence> average;
  CHECK(average.forward({1, 8, 3, 6, 5, 4, 7, 2}, {}) == List{4, 5});
  CHECK(average.backward({4, 8}) == List{1, 2, 1, 2, 1, 2, 1, 2});
  dist_test::BoundLayer<nn::GlobalMaxPool1D, Sequence> largest;
  CHECK(largest.forward({1, 8, 7, 6, 5, 8, 7, 2}, {}) == List{7, 8});
  CHECK(largest.backward({4, 8}) == List{0, 8, 4, 0, 0, 0, 0, 0});
}
