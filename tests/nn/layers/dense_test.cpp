#include <dist/nn/layers/dense.hpp>

#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("Dense computes x · kernel + bias with kernel [in, out]") {
  dist_test::BoundLayer<nn::Dense<2>, dist::StaticShape<3>> dense;
  const List kernel{1, 2, 3, 4, 5, 6};
  const List y = dense.forward({1, 0, -1, 10, 20, 30}, {kernel, {0.5, -0.5}});
  CHECK(y == List{1 - 5 + 0.5, 2 - 6 - 0.5, 10 + 60 + 150 + 0.5, 20 + 80 + 180 - 0.5});
}

TEST_CASE("Dense computes gradients of kernel, bias and input") {
  dist_test::BoundLayer<nn::Dense<2>, dist::StaticShape<3>> dense;
  static_cast<void>(dense.forward({1, 0, -1, 10, 20, 30}, {{1, 2, 3, 4, 5, 6}, {0, 0}}));
  const List dx = dense.backward({1, 2, 3, 4});
  CHECK(dx == List{1 * 1 + 2 * 2, 1 * 3 + 2 * 4, 1 * 5 + 2 * 6, 3 * 1 + 4 * 2, 3 * 3 + 4 * 4, 3 * 5 + 4 * 6});
  CHECK(dense.gradients[0] == List{1 + 30, 2 + 40, 0 + 60, 0 + 80, -1 + 90, -2 + 120});
  CHECK(dense.gradients[1] == List{1 + 3, 2 + 4});
}

TEST_CASE("Dense with Relu passes no gradient through units at 0") {
  dist_test::BoundLayer<nn::Dense<2, nn::Relu>, dist::StaticShape<1>> dense;
  CHECK(dense.forward({2}, {{3, -3}, {1, 1}}) == List{7, 0});
  CHECK(dense.backward({10, 20}) == List{30});
  CHECK(dense.gradients[0] == List{20, 0});
  CHECK(dense.gradients[1] == List{10, 0});
}

TEST_CASE("Dense initialises with its fans, by default with Glorot and zeros") {
  using Default = nn::Dense<5>::On<dist::StaticShape<7>>;
  List kernel(35);
  Default::initialize<0>(dist::TensorView<double>{kernel.data(), dist::Shape{7, 5}}, dist::RandomStream{1});
  List expected(35);
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), dist::Shape{7, 5}}, nn::Fans{7, 5},
                          dist::RandomStream{1});
  CHECK(kernel == expected);

  using Other = nn::Dense<5, nn::Linear, nn::HeNormal, nn::HeNormal>::On<dist::StaticShape<7>>;
  List bias(5);
  Other::initialize<1>(dist::TensorView<double>{bias.data(), dist::Shape{5}}, dist::RandomStream{1});
  CHECK(bias != List(5, 0.0));
  CHECK(std::is_same_v<Default::Output, dist::StaticShape<5>>);
}

TEST_CASE("Dense multiplies along the last axis, whose other axes are rows") {
  using Layer = nn::Dense<3, nn::Linear>;
  using In = dist::StaticShape<2, 1, 2>;
  CHECK(std::is_same_v<Layer::On<In>::Output, dist::StaticShape<2, 1, 3>>);
  CHECK(Layer::On<In>::parameters[0].shape == dist::Shape{2, 3});
  dist_test::BoundLayer<Layer, In> on_axes;
  dist_test::BoundLayer<Layer, dist::StaticShape<2>> on_rows;
  const List x{1, 2, 3, 4, 5, 6, 7, 8}, kernel{1, -1, 2, 3, 0, -2}, bias{0.5, 1, -1};
  CHECK(on_axes.forward(x, {kernel, bias}) == on_rows.forward(x, {kernel, bias}));
  const List dy{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  CHECK(on_axes.backward(dy) == on_rows.backward(dy));
  CHECK(on_axes.gradients == on_rows.gradients);
  CHECK(on_axes.gradients[1] == List{22, 26, 30});
}

TEST_CASE("Dense without bias has only a kernel") {
  using Layer = nn::Dense<2, nn::Linear, nn::GlorotUniform, nn::NoBias>;
  CHECK(Layer::On<dist::StaticShape<3>>::parameters.size() == 1);
  dist_test::BoundLayer<Layer, dist::StaticShape<3>> dense;
  const List kernel{1, 2, 3, 4, 5, 6};
  CHECK(dense.forward({1, 0, -1, 10, 20, 30}, {kernel}) == List{1 - 5, 2 - 6, 10 + 60 + 150, 20 + 80 + 180});
  CHECK(dense.backward({1, 2, 3, 4}) ==
        List{1 * 1 + 2 * 2, 1 * 3 + 2 * 4, 1 * 5 + 2 * 6, 3 * 1 + 4 * 2, 3 * 3 + 4 * 4, 3 * 5 + 4 * 6});
  CHECK(dense.gradients == std::vector<List>{{1 + 30, 2 + 40, 0 + 60, 0 + 80, -1 + 90, -2 + 120}});
}
