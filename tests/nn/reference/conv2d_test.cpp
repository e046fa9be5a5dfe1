#include <dist/nn/reference/conv2d.hpp>

#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

// The arithmetic by hand is in tests/nn/layers; the second layer here needs the first's input gradient.
TEST_CASE("Conv2D: gradients agree with central differences") {
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
