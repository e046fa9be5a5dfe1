#include <dist/nn/softmax.hpp>

#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

// The arithmetic by hand is in tests/nn/layers.
TEST_CASE("Softmax: gradients through it agree with central differences") {
  using Net = nn::Sequential<nn::Input<4>, nn::Dense<17>, nn::Softmax>;
  dist_test::check_gradients<Net, nn::Reference>(3);
}
