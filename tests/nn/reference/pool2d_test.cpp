#include <dist/nn/reference/pool2d.hpp>

#include <cmath>
#include <cstddef>
#include <limits>

#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

// The arithmetic by hand is in tests/nn/layers; the convolution before needs the pooling's gradient.
TEST_CASE("MaxPool2D: gradients through it agree with central differences") {
  using Net = nn::Sequential<nn::Input<6, 7, 1>, nn::Conv2D<2, 2>, nn::MaxPool2D<2>>;
  using Overlapping = nn::Sequential<nn::Input<6, 7, 1>, nn::Conv2D<2, 2>, nn::MaxPool2D<3, 1>>;
  using Padded = nn::Sequential<nn::Input<6, 7, 1>, nn::Conv2D<2, 2>, nn::MaxPool2D<3, 2, nn::Same>>;
  using Global = nn::Sequential<nn::Input<6, 7, 1>, nn::Conv2D<2, 2>, nn::GlobalMaxPool2D>;
  for (const std::size_t rows : std::initializer_list<std::size_t>{0, 1, 3}) {
    CAPTURE(rows);
    dist_test::check_gradients<Net, nn::Reference>(rows);
    dist_test::check_gradients<Overlapping, nn::Reference>(rows);
    dist_test::check_gradients<Padded, nn::Reference>(rows);
    dist_test::check_gradients<Global, nn::Reference>(rows);
  }
}

TEST_CASE("the first of several maxima, or the first NaN, of a window gets the gradient") {
  using Geometry = nn::PoolGeometry<dist::StaticShape<2, 6, 1>, 2, 2>;
  const float nan = std::numeric_limits<float>::quiet_NaN(), least = -std::numeric_limits<float>::infinity();
  const dist::Tensor<float> x{dist::Shape{1, 2, 6, 1},
                              {3, 7, 1, nan, least, least,  //
                               7, 7, nan, 2, least, least}};
  nn::Reference::State state;
  nn::reference::MaxPool2D<Geometry, float> pool;
  dist::Tensor<float> y{dist::Shape{1, 1, 3, 1}}, dx{x.shape()};
  pool.forward(state, x, y);
  CHECK(y[0] == 7);
  CHECK(std::isnan(y[1]));
  CHECK(y[2] == least);
  const dist::Tensor<float> dy{y.shape(), {10, 20, 30}};
  pool.input_gradient(state, x, dy, dx);
  const dist::Tensor<float> wanted{x.shape(), {0, 10, 0, 20, 30, 0, 0, 0, 0, 0, 0, 0}};
  for (std::size_t i = 0; i < dx.size(); ++i) CHECK(dx[i] == wanted[i]);
}
