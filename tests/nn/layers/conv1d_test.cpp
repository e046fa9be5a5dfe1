#include <dist/nn/layers/conv1d.hpp>

#include <type_traits>
#include <vector>

#include <dist/nn/initializer.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("Conv1D correlates sequences [length, channels] with kernels [window, channels, filters]") {
  using Layer = nn::Conv1D<1, 2>;
  using In = dist::StaticShape<3, 2>;
  CHECK(std::is_same_v<Layer::On<In>::Output, dist::StaticShape<2, 1>>);
  CHECK(Layer::On<In>::parameters[0].shape == dist::Shape{2, 2, 1});
  CHECK(Layer::On<In>::parameters[1].shape == dist::Shape{1});
  CHECK(Layer::On<In>::name == "conv1d");
  dist_test::BoundLayer<Layer, In> layer;
  CHECK(layer.forward({1, 2, 3, 4, 5, 6}, {{1, 10, 100, 1000}, {0.5}}) ==
        List{1 + 20 + 300 + 4000 + 0.5, 3 + 40 + 500 + 6000 + 0.5});
  CHECK(layer.backward({2, 3}) == List{2, 20, 200 + 3, 2000 + 30, 300, 3000});
  CHECK(layer.gradients[0] == List{2 * 1 + 3 * 3, 2 * 2 + 3 * 4, 2 * 3 + 3 * 5, 2 * 4 + 3 * 6});
  CHECK(layer.gradients[1] == List{5});
}

TEST_CASE("Conv1D pads only the length") {
  dist_test::BoundLayer<nn::Conv1D<1, 3, nn::Linear, 2, nn::Same>, dist::StaticShape<4, 1>> same;
  CHECK(same.forward({1, 2, 3, 4}, {{1, 10, 100}, {0}}) == List{1 + 20 + 300, 3 + 40});
  dist_test::BoundLayer<nn::Conv1D<1, 3, nn::Linear, 1, nn::Pad<2, 0>>, dist::StaticShape<3, 1>> causal;
  CHECK(causal.forward({1, 2, 3}, {{1, 10, 100}, {0}}) == List{100, 10 + 200, 1 + 20 + 300});
}

TEST_CASE("the fans of Conv1D include the window once") {
  using Bound = nn::Conv1D<4, 3>::On<dist::StaticShape<8, 2>>;
  List kernel(24);
  List expected(24);
  const dist::Shape shape{3, 2, 4};
  Bound::initialize<0>(dist::TensorView<double>{kernel.data(), shape}, dist::RandomStream{1});
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), shape}, nn::Fans{3 * 2, 3 * 4},
                          dist::RandomStream{1});
  CHECK(kernel == expected);
}

TEST_CASE("gradients of Conv1D agree with central differences, and oneDNN with the plain loops") {
  using Net = nn::Sequential<nn::Input<24, 3>, nn::Conv1D<5, 4, nn::Tanh, 1, nn::Same>,
                             nn::Conv1D<4, 3, nn::Silu, 2, nn::Valid, nn::GlorotUniform, nn::NoBias>,
                             nn::Conv1D<2, 3, nn::Relu, 2, nn::Pad<2, 0>>>;
  dist_test::check_gradients<Net, nn::Reference>(2);
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0});
}
