#include <dist/nn/reference/windows.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("for_each_tap visits only taps inside the image") {
  using Geometry = nn::WindowGeometry<dist::StaticShape<2, 1, 1>, 3, 1, nn::Same>;
  std::vector<std::array<std::size_t, 3>> taps;
  nn::reference::for_each_tap<Geometry>([&](std::size_t output, std::size_t input, std::size_t tap) {
    taps.push_back({output, input, tap});
  });
  // The middle column of the window; output 0 starts above the image, output 1 ends below it.
  CHECK(taps == std::vector<std::array<std::size_t, 3>>{{0, 0, 4}, {0, 1, 7}, {1, 0, 1}, {1, 1, 4}});
}

TEST_CASE("for_each_window gives the part of each window inside the image") {
  using Geometry = nn::WindowGeometry<dist::StaticShape<4, 3, 1>, 3, 2, nn::Pad<1>>;
  std::vector<std::array<std::size_t, 5>> windows;
  nn::reference::for_each_window<Geometry>([&](std::size_t output, dist::IndexRange rows, dist::IndexRange columns) {
    windows.push_back({output, rows.begin, rows.end, columns.begin, columns.end});
  });
  CHECK(windows ==
        std::vector<std::array<std::size_t, 5>>{{0, 0, 2, 0, 2}, {1, 0, 2, 1, 3}, {2, 1, 4, 0, 2}, {3, 1, 4, 1, 3}});
}

TEST_CASE("covering returns the windows that contain a row") {
  const auto check = []<class Geometry>(Geometry) {
    for (std::size_t at = 0; at < Geometry::height; ++at) {
      const dist::IndexRange found = nn::reference::covering<Geometry>(at, Geometry::pad_top, Geometry::output_height);
      for (std::size_t output = 0; output < Geometry::output_height; ++output) {
        const dist::IndexRange rows = nn::reference::inside<Geometry>(output, Geometry::pad_top, Geometry::height);
        CHECK((found.begin <= output && output < found.end) == (rows.begin <= at && at < rows.end));
      }
    }
  };
  check(nn::WindowGeometry<dist::StaticShape<7, 1, 1>, 3, 2, nn::Same>{});
  check(nn::WindowGeometry<dist::StaticShape<8, 5, 1>, 2, 3, nn::Valid>{});
  check(nn::WindowGeometry<dist::StaticShape<6, 6, 1>, 4, 1, nn::Pad<3, 1>>{});
}

// tests/nn/layers checks the values; the second layer here needs the first's input gradient.
TEST_CASE("gradients of Conv2D agree with central differences") {
  using Plain = nn::Sequential<nn::Input<5, 4, 2>, nn::Conv2D<3, 2, nn::Relu>, nn::Conv2D<2, 3>>;
  using Strided = nn::Sequential<nn::Input<6, 5, 1>, nn::Conv2D<2, 1>, nn::Conv2D<2, 3, nn::Relu, 2>>;
  using Padded = nn::Sequential<nn::Input<4, 5, 1>, nn::Conv2D<2, 1>, nn::Conv2D<2, 3, nn::Linear, 2, nn::Same>,
                                nn::Conv2D<1, 2, nn::Linear, 1, nn::Same>>;
  using Grouped = nn::Sequential<nn::Input<4, 5, 2>, nn::Conv2D<4, 2>,
                                 nn::Conv2D<6, 3, nn::Relu, 2, nn::Pad<2, 1>, nn::GlorotUniform, nn::Zeros, 2>>;
  for (const std::size_t rows : std::initializer_list<std::size_t>{0, 1, 3}) {
    CAPTURE(rows);
    dist_test::check_gradients<Plain, nn::Reference>(rows);
    dist_test::check_gradients<Strided, nn::Reference>(rows);
    dist_test::check_gradients<Padded, nn::Reference>(rows);
    dist_test::check_gradients<Grouped, nn::Reference>(rows);
  }
}

// tests/nn/layers checks the values; the convolution needs the pooling's input gradient.
TEST_CASE("gradients through MaxPool2D agree with central differences") {
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

TEST_CASE("the first of several maxima of a window, or the first NaN, gets the gradient") {
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
