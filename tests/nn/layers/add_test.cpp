#include <dist/nn/layers/add.hpp>

#include <type_traits>
#include <vector>

#include <dist/core/static_shape.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("Add sums its branches, and their input gradients") {
  dist_test::BoundLayer<nn::Add<nn::Dense<2>, nn::Sequential<>, nn::ReLU>, dist::StaticShape<2>> layer;
  // x · [1 10; 100 1000] + [0.5 0] + x + relu(x)
  CHECK(layer.forward({1, -2}, {{1, 10, 100, 1000}, {0.5, 0}}) == List{1 - 200 + 0.5 + 1 + 1, 10 - 2000 - 2 + 0});
  CHECK(layer.backward({3, 4}) == List{3 + 40 + 3 + 3, 300 + 4000 + 4 + 0});
  CHECK(layer.gradients[0] == List{3, 4, -6, -8});
  CHECK(layer.gradients[1] == List{3, 4});
}

TEST_CASE("Add exposes the parameters of its inner layers, with names unique in the network") {
  using Body = nn::Sequential<nn::Conv2D<4, 3, nn::Relu, 2, nn::Same>, nn::Conv2D<4, 3, nn::Linear, 1, nn::Same>>;
  using Net = nn::Sequential<nn::Input<8, 8, 1>, nn::Conv2D<2, 3, nn::Relu, 1, nn::Same>,
                             nn::Residual<Body, nn::Conv2D<4, 1, nn::Linear, 2>>, nn::ReLU, nn::Flatten, nn::Dense<2>>;
  CHECK(Net::layer_count == 5);
  CHECK(std::is_same_v<Net::Output<1>, dist::StaticShape<4, 4, 4>>);
  REQUIRE(Net::parameters.size() == 10);
  CHECK(Net::parameters[2].name() == "conv2d_1/kernel");
  CHECK(Net::parameters[4].name() == "conv2d_2/kernel");
  CHECK(Net::parameters[6].name() == "conv2d_3/kernel");
  CHECK(Net::parameters[6].shape == dist::Shape{1, 1, 2, 4});
  CHECK(Net::parameters[7].name() == "conv2d_3/bias");
  CHECK(Net::parameters[8].name() == "dense/kernel");
  std::vector<double> all(Net::padded_count);
  Net::initialize(dist::TensorView<double>{all.data(), dist::Shape{all.size()}}, 3);
  // The projection's kernel is initialised with its own fans: 2 inputs and 4 outputs.
  std::vector<double> expected(8);
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), dist::Shape{1, 1, 2, 4}}, nn::Fans{2, 4},
                          dist::RandomStream{3, (std::uint64_t{0x77656967} << 32) + 6});
  CHECK(List(all.begin() + static_cast<long>(Net::parameters[6].offset),
             all.begin() + static_cast<long>(Net::parameters[6].offset) + 8) == expected);
}

TEST_CASE("gradients of Add agree with central differences, and oneDNN with the plain loops") {
  using Body = nn::Sequential<nn::Conv2D<4, 3, nn::Relu, 2, nn::Same>, nn::Conv2D<4, 3, nn::Linear, 1, nn::Same>>;
  // Branches with parameters, without parameters, with only a reshape, and nested branches.
  using Nested = nn::Add<nn::Sequential<nn::Flatten, nn::Reshape<4, 3, 4>>, nn::Add<nn::Conv2D<4, 1>, nn::ReLU>>;
  using Net = nn::Sequential<nn::Input<7, 5, 1>, nn::Conv2D<3, 2, nn::Linear, 1, nn::Same>,
                             nn::Residual<Body, nn::Conv2D<4, 1, nn::Linear, 2>>, Nested, nn::Flatten, nn::Dense<2>>;
  using First = nn::Sequential<nn::Input<4>, nn::Add<nn::Dense<4, nn::Relu>, nn::Sequential<>>, nn::Dense<3>>;
  for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    CAPTURE(rows);
    dist_test::check_gradients<Net, nn::Reference>(rows);
    dist_test::check_gradients<First, nn::Reference>(rows);
  }
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0, 4});
}
