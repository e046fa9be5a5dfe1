#include <dist/nn/onednn/max_pool2d.hpp>

#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/max_pool2d.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("MaxPool2D by oneDNN computes what the plain loops compute, at changing batch sizes") {
  using Net = nn::Sequential<nn::Input<8, 9, 2>, nn::Conv2D<16, 2>, nn::MaxPool2D<2>, nn::Conv2D<3, 1>>;
  using Overlapping = nn::Sequential<nn::Input<8, 9, 1>, nn::Conv2D<3, 2>, nn::MaxPool2D<3, 2>>;
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({4, 1, 0, 4});
  using Padded = nn::Sequential<nn::Input<8, 9, 1>, nn::Conv2D<3, 2>, nn::MaxPool2D<3, 2, nn::Same>,
                                nn::MaxPool2D<3, 1, nn::Pad<1>>>;
  dist_test::check_against<Overlapping, nn::OneDnn, nn::Reference>({4, 1});
  dist_test::check_against<Padded, nn::OneDnn, nn::Reference>({4, 1});
}

TEST_CASE("of equal maxima the first in row-major order gets the gradient, with both back ends") {
  // Relu makes many zeros, and so many windows of equal elements.
  using Net = nn::Sequential<nn::Input<9, 9, 1>, nn::Conv2D<16, 2, nn::Relu>, nn::MaxPool2D<2>>;
  using Geometry = nn::PoolGeometry<dist::StaticShape<4, 4, 1>, 2, 2>;
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({6});

  nn::onednn::State state;
  nn::onednn::MaxPool2D<Geometry, float> pool;
  const dist::Tensor<float> x{dist::Shape{1, 4, 4, 1}};
  dist::Tensor<float> y{dist::Shape{1, 2, 2, 1}};
  dist::Tensor<float> dx{x.shape()};
  pool.forward(state, x, y);
  for (float& element : y.elements()) element = 1;
  pool.input_gradient(state, x, y.view(), dx);
  for (std::size_t i = 0; i < 16; ++i) CHECK(dx[i] == (i == 0 || i == 2 || i == 8 || i == 10 ? 1.0F : 0.0F));
}
