#include <dist/nn/reference/dense.hpp>

#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

// The arithmetic by hand is in tests/nn/layers; the second layer here needs the first's input gradient.
TEST_CASE("Dense: gradients agree with central differences") {
  using Net = nn::Sequential<nn::Input<4>, nn::Dense<18, nn::Relu>, nn::Dense<3>>;
  using One = nn::Sequential<nn::Input<1>, nn::Dense<1>, nn::Dense<1>>;
  for (const std::size_t rows : std::initializer_list<std::size_t>{0, 1, 3}) {
    CAPTURE(rows);
    dist_test::check_gradients<Net, nn::Reference>(rows);
    dist_test::check_gradients<One, nn::Reference>(rows);
  }
}
