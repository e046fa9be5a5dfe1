#include <dist/nn/layers/conv2d.hpp>

#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("Conv2D correlates without flipping the kernel") {
  dist_test::BoundLayer<nn::Conv2D<1, 2>, dist::StaticShape<3, 3, 1>> layer;
  const List image{1, 2, 3,  //
                   4, 5, 6,  //
                   7, 8, 9};
  const List y = layer.forward(image, {{1, 10, 100, 1000}, {0.5}});
  CHECK(y == List{1 + 20 + 400 + 5000 + 0.5, 2 + 30 + 500 + 6000 + 0.5,  //
                  4 + 50 + 700 + 8000 + 0.5, 5 + 60 + 800 + 9000 + 0.5});
}

TEST_CASE("Conv2D takes kernels [height, width, in, out] and images [height, width, channels]") {
  dist_test::BoundLayer<nn::Conv2D<2, 1>, dist::StaticShape<1, 2, 2>> layer;
  // Pixels (1, 2) and (3, 4); channel c contributes to filter f with factor 10^(2c + f).
  CHECK(layer.forward({1, 2, 3, 4}, {{1, 10, 100, 1000}, {0, 0}}) == List{1 + 200, 10 + 2000, 3 + 400, 30 + 4000});
}

TEST_CASE("Conv2D supports strides, and nn::Same pads an odd zero at the end") {
  dist_test::BoundLayer<nn::Conv2D<1, 2, nn::Linear, 2>, dist::StaticShape<2, 5, 1>> valid;
  const List image{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  CHECK(valid.forward(image, {{1, 1, 1, 1}, {0}}) == List{1 + 2 + 6 + 7, 3 + 4 + 8 + 9});  // the last column is unused

  dist_test::BoundLayer<nn::Conv2D<1, 2, nn::Linear, 1, nn::Same>, dist::StaticShape<2, 2, 1>> same;
  CHECK(same.forward({1, 2, 3, 4}, {{1, 10, 100, 1000}, {0}}) == List{1 + 20 + 300 + 4000, 2 + 400, 3 + 40, 4});

  dist_test::BoundLayer<nn::Conv2D<1, 3, nn::Linear, 2, nn::Same>, dist::StaticShape<3, 3, 1>> both;
  // One zero on each side: windows centred on the corners.
  CHECK(both.forward({1, 2, 3, 4, 5, 6, 7, 8, 9}, {List(9, 1.0), {0}}) ==
        List{1 + 2 + 4 + 5, 2 + 3 + 5 + 6, 4 + 5 + 7 + 8, 5 + 6 + 8 + 9});
}

TEST_CASE("Conv2D computes gradients of kernel, bias and input") {
  dist_test::BoundLayer<nn::Conv2D<1, 2>, dist::StaticShape<2, 3, 1>> layer;
  static_cast<void>(layer.forward({1, 2, 3, 4, 5, 6}, {{1, 10, 100, 1000}, {0}}));
  const List dx = layer.backward({2, 3});
  CHECK(dx == List{2, 20 + 3, 30, 200, 2000 + 300, 3000});
  CHECK(layer.gradients[0] == List{2 * 1 + 3 * 2, 2 * 2 + 3 * 3, 2 * 4 + 3 * 5, 2 * 5 + 3 * 6});
  CHECK(layer.gradients[1] == List{5});
}

TEST_CASE("Conv2D with Relu passes no gradient through outputs at 0") {
  dist_test::BoundLayer<nn::Conv2D<1, 1, nn::Relu>, dist::StaticShape<1, 2, 1>> layer;
  CHECK(layer.forward({1, -1}, {{3}, {0}}) == List{3, 0});
  CHECK(layer.backward({10, 20}) == List{30, 0});
  CHECK(layer.gradients[0] == List{10});
  CHECK(layer.gradients[1] == List{10});
}

TEST_CASE("the fans of Conv2D include the window") {
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

TEST_CASE("Conv2D supports the padding nn::Pad") {
  dist_test::BoundLayer<nn::Conv2D<1, 3, nn::Linear, 2, nn::Pad<1>>, dist::StaticShape<2, 4, 1>> layer;
  // Windows centred on the first and the third element of the first row.
  CHECK(layer.forward({1, 2, 3, 4, 5, 6, 7, 8}, {List(9, 1.0), {0}}) == List{1 + 2 + 5 + 6, 2 + 3 + 4 + 6 + 7 + 8});
}

TEST_CASE("each filter of Conv2D reads the channels of its group only") {
  using Bound =
      nn::Conv2D<4, 1, nn::Linear, 1, nn::Valid, nn::GlorotUniform, nn::Zeros, 2>::On<dist::StaticShape<1, 1, 4>>;
  CHECK(Bound::parameters[0].shape == dist::Shape{1, 1, 2, 4});
  dist_test::BoundLayer<nn::Conv2D<4, 1, nn::Linear, 1, nn::Valid, nn::GlorotUniform, nn::Zeros, 2>,
                        dist::StaticShape<1, 1, 4>>
      layer;
  // Channel c of a group contributes to filter f with factor kernel[c][f]: filters 0 and 1 read channels 0 and 1,
  // filters 2 and 3 read channels 2 and 3.
  CHECK(layer.forward({1, 2, 3, 4}, {{1, 10, 100, 1000, 2, 20, 200, 2000}, {0, 0, 0, 1}}) ==
        List{1 * 1 + 2 * 2, 1 * 10 + 2 * 20, 3 * 100 + 4 * 200, 3 * 1000 + 4 * 2000 + 1});
  CHECK(layer.backward({1, 2, 3, 4}) == List{1 + 20, 2 + 40, 300 + 4000, 600 + 8000});
  CHECK(layer.gradients[0] == List{1, 2, 9, 12, 2, 4, 12, 16});
  CHECK(layer.gradients[1] == List{1, 2, 3, 4});
}

TEST_CASE("the fans of a group are its channels and all filters, as in Keras") {
  using Bound =
      nn::Conv2D<4, 3, nn::Linear, 1, nn::Valid, nn::GlorotUniform, nn::Zeros, 2>::On<dist::StaticShape<8, 8, 2>>;
  List kernel(36);
  List expected(36);
  const dist::Shape shape{3, 3, 1, 4};
  Bound::initialize<0>(dist::TensorView<double>{kernel.data(), shape}, dist::RandomStream{1});
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), shape}, nn::Fans{9, 9 * 4}, dist::RandomStream{1});
  CHECK(kernel == expected);
}
