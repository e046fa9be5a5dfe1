#include <dist/nn/reference/max_pool2d.hpp>

#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/max_pool2d.hpp>
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
  for (const std::size_t rows : std::initializer_list<std::size_t>{0, 1, 3}) {
    CAPTURE(rows);
    dist_test::check_gradients<Net, nn::Reference>(rows);
    dist_test::check_gradients<Overlapping, nn::Reference>(rows);
    dist_test::check_gradients<Padded, nn::Reference>(rows);
  }
}
