#include <dist/nn/layers/pool2d.hpp>

#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("MaxPool2D computes maxima per channel, and drops incomplete windows") {
  dist_test::BoundLayer<nn::MaxPool2D<2>, dist::StaticShape<3, 4, 1>> layer;
  CHECK(layer.forward({1, 2, 3, 4,   //
                       5, 0, -7, 8,  //
                       9, 9, 9, 9}) == List{5, 8});
  dist_test::BoundLayer<nn::MaxPool2D<2>, dist::StaticShape<2, 2, 2>> channels;
  CHECK(channels.forward({1, -1, 2, -2, 3, -3, 4, -4}) == List{4, -1});
}

TEST_CASE("the gradients of overlapping MaxPool2D windows add up") {
  dist_test::BoundLayer<nn::MaxPool2D<2, 1>, dist::StaticShape<2, 3, 1>> layer;
  CHECK(layer.forward({1, 9, 2, 3, 4, 5}) == List{9, 9});
  CHECK(layer.backward({10, 20}) == List{0, 30, 0, 0, 0, 0});
}

TEST_CASE("the first of equal maxima in row-major order gets the gradient") {
  dist_test::BoundLayer<nn::MaxPool2D<2>, dist::StaticShape<2, 2, 1>> layer;
  CHECK(layer.forward({0, 7, 7, 7, -1, -1, -1, -1}) == List{7, -1});
  CHECK(layer.backward({5, 6}) == List{0, 5, 0, 0, 6, 0, 0, 0});
}

TEST_CASE("the output shape of MaxPool2D follows from window and stride") {
  CHECK(std::is_same_v<nn::MaxPool2D<2>::On<dist::StaticShape<26, 27, 32>>::Output, dist::StaticShape<13, 13, 32>>);
  CHECK(std::is_same_v<nn::MaxPool2D<3, 2>::On<dist::StaticShape<7, 8, 1>>::Output, dist::StaticShape<3, 3, 1>>);
}

TEST_CASE("padding is never the maximum, and gets no gradient") {
  dist_test::BoundLayer<nn::MaxPool2D<2, 2, nn::Same>, dist::StaticShape<3, 3, 1>> layer;
  CHECK(layer.forward({-1, -2, -3,  //
                       -4, -5, -6,  //
                       -7, -8, -9}) == List{-1, -3, -7, -9});
  CHECK(layer.backward({10, 20, 30, 40}) == List{10, 0, 20, 0, 0, 0, 30, 0, 40});
  dist_test::BoundLayer<nn::MaxPool2D<3, 2, nn::Pad<1>>, dist::StaticShape<3, 4, 1>> padded;
  CHECK(padded.forward({1, 2, 3, 4,  //
                        5, 6, 7, 8,  //
                        9, 0, 1, 2}) == List{6, 8, 9, 8});
}
