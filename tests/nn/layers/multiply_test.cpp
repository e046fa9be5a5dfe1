#include <dist/nn/layers/multiply.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

#include <dist/core/static_shape.hpp>
#include <dist/nn/activations/smooth.hpp>
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

TEST_CASE("Multiply multiplies its branches, and each gets the gradient times the others") {
  dist_test::BoundLayer<nn::Multiply<nn::Dense<2>, nn::Sequential<>, nn::ReLU>, dist::StaticShape<2>> layer;
  // (x · [1 10; 100 1000] + [0.5 0]) · x · relu(x)
  CHECK(layer.forward({3, 2}, {{1, 10, 100, 1000}, {0.5, 0}}) == List{203.5 * 3 * 3, 2030.0 * 2 * 2});
  // The gradients of the branches: (1, 2) · (9, 4), (1, 2) · (203.5 · 3, 2030 · 2), and the same for relu(x).
  CHECK(layer.backward({1, 2}) == List{9 * 1 + 8 * 10 + 2 * 610.5, 9 * 100 + 8 * 1000 + 2 * 8120});
  CHECK(layer.gradients[0] == List{3 * 9, 3 * 8, 2 * 9, 2 * 8});
  CHECK(layer.gradients[1] == List{9, 8});
}

TEST_CASE("a product of two dense layers is the gated layer SwiGLU") {
  dist_test::BoundLayer<nn::Multiply<nn::Dense<1, nn::Silu>, nn::Dense<1>>, dist::StaticShape<2>> layer;
  const double gate = 0.5 * 3 - 0.25 * 2 + 0.125, value = -1.0 * 3 + 2.0 * 2 + 1;
  const List y = layer.forward({3, 2}, {{0.5, -0.25}, {0.125}, {-1, 2}, {1}});
  CHECK(y[0] == doctest::Approx(gate / (1 + std::exp(-gate)) * value).epsilon(1e-12));
}

TEST_CASE("gradients of Multiply agree with central differences, and oneDNN with the plain loops") {
  using Images = nn::Sequential<nn::Input<5, 4, 2>,
                                nn::Multiply<nn::Conv2D<3, 3, nn::Relu, 1, nn::Same>, nn::Conv2D<3, 1, nn::Sigmoid>>,
                                nn::Multiply<nn::Sequential<>, nn::ReLU, nn::Conv2D<3, 1>>, nn::Flatten, nn::Dense<2>>;
  using First = nn::Sequential<nn::Input<4>, nn::Multiply<nn::Dense<4, nn::Silu>, nn::Sequential<>>, nn::Dense<3>>;
  for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    CAPTURE(rows);
    dist_test::check_gradients<Images, nn::Reference>(rows);
    dist_test::check_gradients<First, nn::Reference>(rows);
  }
  dist_test::check_against<Images, nn::OneDnn, nn::Reference>({3, 1, 0, 4});
}
