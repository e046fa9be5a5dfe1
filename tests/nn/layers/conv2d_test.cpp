#include <dist/nn/layers/conv2d.hpp>

#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("Conv2D: correlation, the kernel is not flipped") {
  dist_test::PlacedLayer<nn::Conv2D<1, 2>, dist::StaticShape<3, 3, 1>> layer;
  const List image{1, 2, 3,  //
                   4, 5, 6,  //
                   7, 8, 9};
  const List y = layer.forward(image, {{1, 10, 100, 1000}, {0.5}});
  CHECK(y == List{1 + 20 + 400 + 5000 + 0.5, 2 + 30 + 500 + 6000 + 0.5,  //
                  4 + 50 + 700 + 8000 + 0.5, 5 + 60 + 800 + 9000 + 0.5});
}

TEST_CASE("Conv2D: kernel [height, width, in, out], images [height, width, channels]") {
  dist_test::PlacedLayer<nn::Conv2D<2, 1>, dist::StaticShape<1, 2, 2>> layer;
  // Pixels (1, 2) and (3, 4); channel c to filter f by 10^(2c + f).
  CHECK(layer.forward({1, 2, 3, 4}, {{1, 10, 100, 1000}, {0, 0}}) == List{1 + 200, 10 + 2000, 3 + 400, 30 + 4000});
}

TEST_CASE("Conv2D: stride, and the padding nn::Same with its odd zero behind") {
  dist_test::PlacedLayer<nn::Conv2D<1, 2, nn::Linear, 2>, dist::StaticShape<2, 5, 1>> valid;
  const List image{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  CHECK(valid.forward(image, {{1, 1, 1, 1}, {0}}) ==
        List{1 + 2 + 6 + 7, 3 + 4 + 8 + 9});  // the last column is not used

  dist_test::PlacedLayer<nn::Conv2D<1, 2, nn::Linear, 1, nn::Same>, dist::StaticShape<2, 2, 1>> same;
  CHECK(same.forward({1, 2, 3, 4}, {{1, 10, 100, 1000}, {0}}) == List{1 + 20 + 300 + 4000, 2 + 400, 3 + 40, 4});

  dist_test::PlacedLayer<nn::Conv2D<1, 3, nn::Linear, 2, nn::Same>, dist::StaticShape<3, 3, 1>> both;
  // One zero on each side: windows centred on the corners.
  CHECK(both.forward({1, 2, 3, 4, 5, 6, 7, 8, 9}, {List(9, 1.0), {0}}) ==
        List{1 + 2 + 4 + 5, 2 + 3 + 5 + 6, 4 + 5 + 7 + 8, 5 + 6 + 8 + 9});
}

TEST_CASE("Conv2D: gradients of kernel, bias and input") {
  dist_test::PlacedLayer<nn::Conv2D<1, 2>, dist::StaticShape<2, 3, 1>> layer;
  static_cast<void>(layer.forward({1, 2, 3, 4, 5, 6}, {{1, 10, 100, 1000}, {0}}));
  const List dx = layer.backward({2, 3});
  CHECK(dx == List{2, 20 + 3, 30, 200, 2000 + 300, 3000});
  CHECK(layer.gradients[0] == List{2 * 1 + 3 * 2, 2 * 2 + 3 * 3, 2 * 4 + 3 * 5, 2 * 5 + 3 * 6});
  CHECK(layer.gradients[1] == List{5});
}

TEST_CASE("Conv2D with Relu: no gradient through outputs that are off") {
  dist_test::PlacedLayer<nn::Conv2D<1, 1, nn::Relu>, dist::StaticShape<1, 2, 1>> layer;
  CHECK(layer.forward({1, -1}, {{3}, {0}}) == List{3, 0});
  CHECK(layer.backward({10, 20}) == List{30, 0});
  CHECK(layer.gradients[0] == List{10});
  CHECK(layer.gradients[1] == List{10});
}

TEST_CASE("Conv2D: fans count the window") {
  using Placed = nn::Conv2D<4, 3>::On<dist::StaticShape<8, 8, 2>>;
  CHECK(std::is_same_v<Placed::Output, dist::StaticShape<6, 6, 4>>);
  CHECK(Placed::parameters[0].shape == dist::Shape{3, 3, 2, 4});
  List kernel(72);
  List expected(72);
  const dist::Shape shape{3, 3, 2, 4};
  Placed::initialize<0>(dist::TensorView<double>{kernel.data(), shape}, dist::RandomStream{1});
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), shape}, nn::Fans{9 * 2, 9 * 4},
                          dist::RandomStream{1});
  CHECK(kernel == expected);
}
