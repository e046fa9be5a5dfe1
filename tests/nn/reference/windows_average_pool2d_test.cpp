#include <dist/nn/reference/windows.hpp>

#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

// tests/nn/layers checks the values; the convolution needs the pooling's input gradient.
TEST_CASE("gradients through AveragePool2D agree with central differences") {
  using Net = nn::Sequential<nn::Input<6, 7, 1>, nn::Conv2D<2, 2>, nn::AveragePool2D<3, 2, nn::Same>>;
  using Counted =
      nn::Sequential<nn::Input<6, 7, 1>, nn::Conv2D<2, 2>, nn::AveragePool2D<3, 2, nn::Same, nn::CountPadding>>;
  using Overlapping = nn::Sequential<nn::Input<6, 7, 1>, nn::Conv2D<2, 2>, nn::AveragePool2D<3, 1>>;
  for (const std::size_t rows : std::initializer_list<std::size_t>{0, 1, 3}) {
    CAPTURE(rows);
    dist_test::check_gradients<Net, nn::Reference>(rows);
    dist_test::check_gradients<Counted, nn::Reference>(rows);
    dist_test::check_gradients<Overlapping, nn::Reference>(rows);
  }
}
