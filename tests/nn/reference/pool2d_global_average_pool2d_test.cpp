#include <dist/nn/reference/pool2d.hpp>

#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

// The arithmetic by hand is in tests/nn/layers; the convolution before needs the pooling's gradient.
TEST_CASE("GlobalAveragePool2D: gradients through it agree with central differences, and oneDNN with the plain loops") {
  using Net = nn::Sequential<nn::Input<6, 7, 1>, nn::Conv2D<2, 2>, nn::GlobalAveragePool2D>;
  for (const std::size_t rows : std::initializer_list<std::size_t>{0, 1, 3}) {
    CAPTURE(rows);
    dist_test::check_gradients<Net, nn::Reference>(rows);
  }
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({4, 1, 0, 4});
}
