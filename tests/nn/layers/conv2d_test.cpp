#include <dist/nn/layers/conv2d.hpp>

#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("Conv2D: correlation, the kernel is not flipped") {
  dist_test::BoundLayer<nn::Conv2D<1, 2>, dist::StaticShape<3, 3, 1>> layer;
  const List image{1, 2, 3,  //
                   4, 5, 6,  //
                   7, 8, 9};
  const List y = layer.forward(image, {{1, 10, 100, 1000}, {0.5}});
  CHECK(y == List{1 + 20 + 400 + 5000 + 0.5, 2 + 30 + 500 + 6000 + 0.5,  //
                  4 + 50 + 700 + 8000 + 0.5, 5 + 60 + 800 + 9000 + 0.5});
}

TEST_CASE("Conv2D: kernel [height, width, in, out], images [height, width, channels]") {
  dist_test::BoundLayer<nn::Conv2D<2, 1>, dist::StaticShape<1, 2, 2>> layer;
  // Pixels (1, 2) and (3, 4); channel c to filter f by 10^(2c + f).
  CHECK(layer.forward({1, 2, 3, 4}, {{1, 10, 100, 1000}, {0, 0}}) == List{1 + 200, 10 + 2000, 3 + 400, 30 + 4000});
}

TEST_CASE("Conv2D: stride, and the padding nn::Same with its odd zero behind") {
  dist_test::BoundLayer<nn::Conv2D<1, 2, nn::Linear, 2>, dist::StaticShape<2, 5, 1>> valid;
  const List image{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  CHECK(valid.forward(image, {{1, 1, 1, 1}, {0}}) ==
        List{1 + 2 + 6 + 7, 3 + 4 + 8 + 9});  // the last column is not used

  dist_test::BoundLayer<nn::Conv2D<1, 2, nn::Linear, 1, nn::Same>, dist::StaticShape<2, 2, 1>> same;
  CHECK(same.forward({1, 2, 3, 4}, {{1, 10, 100, 1000}, {0}}) == List{1 + 20 + 300 + 4000, 2 + 400, 3 + 40, 4});

  dist_test::BoundLayer<nn::Conv2D<1, 3, nn::Linear, 2, nn::Same>, dist::StaticShape<3, 3, 1>> both;
  // One zero on each side: windows centred on the corners.
  CHECK(both.forward({1, 2, 3, 4, 5, 6, 7, 8, 9}, {List(9, 1.0), {0}}) ==
        List{1 + 2 + 4 + 5, 2 + 3 + 5 + 6, 4 + 5 + 7 + 8, 5 + 6 + 8 + 9});
}

TEST_CASE("Conv2D: gradients of kernel, bias and input") {
  dist_test::BoundLayer<nn::Conv2D<1, 2>, dist::StaticShape<2, 3, 1>> layer;
  static_cast<void>(layer.forward({1, 2, 3, 4, 5, 6}, {{1, 10, 100, 1000}, {0}}));
  const List dx = layer.backward({2, 3});
  CHECK(dx == List{2, 20 + 3, 30, 200, 2000 + 300, 3000});
  CHECK(layer.gradients[0] == List{2 * 1 + 3 * 2, 2 * 2 + 3 * 3, 2 * 4 + 3 * 5, 2 * 5 + 3 * 6});
  CHECK(layer.gradients[1] == List{5});
}

TEST_CASE("Conv2D with Relu: no gradient through outputs that are off") {
  dist_test::BoundLayer<nn::Conv2D<1, 1, nn::Relu>, dist::StaticShape<1, 2, 1>> layer;
  CHECK(layer.forward({1, -1}, {{3}, {0}}) == List{3, 0});
  CHECK(layer.backward({10, 20}) == List{30, 0});
  CHECK(layer.gradients[0] == List{10});
  CHECK(layer.gradients[1] == List{10});
}

TEST_CASE("Conv2D: fans count the window") {
  using Bound = nn::Conv2D<4, 3>::On<dist::StaticShape<8, 8, 2>>;
  CHECK(std::is_same_v<Bound::Output, dist::StaticShape<6, 6, 4>>);
  CHECK(Bound::parameters[0].shape == dist::Shape{3, 3, 2, 4});
  List kernel(72);
  List expected(72);
  const dist::Shape shape{3, 3, 2, 4};
  Bound::initialize<0>(dist::TensorView<double>{kernel.data(), shape}, dist::RandomStream{1});
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), shape}, nn::Fans{9 * 2, 9 * 4},
                          dist::RandomStream{1});
  CHECK(kernel == expected);
}

TEST_CASE("Conv2D: the padding nn::Pad") {
  dist_test::BoundLayer<nn::Conv2D<1, 3, nn::Linear, 2, nn::Pad<1>>, dist::StaticShape<2, 4, 1>> layer;
  // Windows centred on the first and the third element of the first row.
  CHECK(layer.forward({1, 2, 3, 4, 5, 6, 7, 8}, {List(9, 1.0), {0}}) == List{1 + 2 + 5 + 6, 2 + 3 + 4 + 6 + 7 + 8});
}

TEST_CASE("Conv2D: each filter sees the channels of its group") {
  using Bound =
      nn::Conv2D<4, 1, nn::Linear, 1, nn::Valid, nn::GlorotUniform, nn::Zeros, 2>::On<dist::StaticShape<1, 1, 4>>;
  CHECK(Bound::parameters[0].shape == dist::Shape{1, 1, 2, 4});
  dist_test::BoundLayer<nn::Conv2D<4, 1, nn::Linear, 1, nn::Valid, nn::GlorotUniform, nn::Zeros, 2>,
                        dist::StaticShape<1, 1, 4>>
      layer;
  // Channel c of a group to filter f by kernel[c][f]: filters 0 and 1 see channels 0 and 1, the others 2 and 3.
  CHECK(layer.forward({1, 2, 3, 4}, {{1, 10, 100, 1000, 2, 20, 200, 2000}, {0, 0, 0, 1}}) ==
        List{1 * 1 + 2 * 2, 1 * 10 + 2 * 20, 3 * 100 + 4 * 200, 3 * 1000 + 4 * 2000 + 1});
  CHECK(layer.backward({1, 2, 3, 4}) == List{1 + 20, 2 + 40, 300 + 4000, 600 + 8000});
  CHECK(layer.gradients[0] == List{1, 2, 9, 12, 2, 4, 12, 16});
  CHECK(layer.gradients[1] == List{1, 2, 3, 4});
}

TEST_CASE("Conv2D: the fans of a group are those of its channels and of all filters, as in Keras") {
  using Bound =
      nn::Conv2D<4, 3, nn::Linear, 1, nn::Valid, nn::GlorotUniform, nn::Zeros, 2>::On<dist::StaticShape<8, 8, 2>>;
  List kernel(36);
  List expected(36);
  const dist::Shape shape{3, 3, 1, 4};
  Bound::initialize<0>(dist::TensorView<double>{kernel.data(), shape}, dist::RandomStream{1});
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), shape}, nn::Fans{9, 9 * 4}, dist::RandomStream{1});
  CHECK(kernel == expected);
}
