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
