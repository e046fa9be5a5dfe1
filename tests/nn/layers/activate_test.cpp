#include <dist/nn/layers/activate.hpp>

#include <cmath>
#include <vector>

#include <dist/core/static_shape.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/own_activations.hpp"
#include "nn/place_layer.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;
using dist_test::Softsign;
using dist_test::Square;
using List = std::vector<double>;

TEST_CASE("Activate supports functions with a gradient of the output and of the input") {
  dist_test::BoundLayer<nn::Activate<Softsign>, dist::StaticShape<3>> softsign;
  CHECK(softsign.forward({-1, 3, 0}) == List{-0.5, 0.75, 0});
  CHECK(softsign.backward({4, 16, 2}) == List{1, 1, 2});
  dist_test::BoundLayer<nn::Activate<Square>, dist::StaticShape<2>> square;
  CHECK(square.forward({-3, 2}) == List{9, 4});
  CHECK(square.backward({1, 10}) == List{-6, 40});
  CHECK(nn::Activate<Softsign>::On<dist::StaticShape<2>>::name == "activation");
}

TEST_CASE("activations in and as layers agree with central differences, and oneDNN with the plain loops") {
  const auto check = []<class Function>(Function) {
    using Net = nn::Sequential<nn::Input<5, 4, 1>, nn::Conv2D<3, 2, Function>, nn::Activate<Function>,
                               nn::Conv2D<2, 2, Function>, nn::Flatten, nn::Dense<5, Function>, nn::Dense<3, Function>>;
    dist_test::check_gradients<Net, nn::Reference>(2);
    dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0, 4});
  };
  check(nn::Tanh{});
  check(nn::Sigmoid{});
  check(nn::Silu{});
  check(nn::Gelu{});
  check(nn::GeluTanh{});
  check(nn::Softplus{});
  check(nn::Elu<>{});
  check(nn::Elu<1, 2>{});
  check(nn::LeakyRelu<30>{});
  check(nn::HardSilu{});
  check(Softsign{});
  check(Square{});
}
