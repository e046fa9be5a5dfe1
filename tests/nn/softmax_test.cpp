#include <dist/nn/softmax.hpp>

#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

// tests/nn/layers checks the values.
TEST_CASE("gradients through Softmax agree with central differences") {
  using Net = nn::Sequential<nn::Input<4>, nn::Dense<17>, nn::Softmax>;
  dist_test::check_gradients<Net, nn::Reference>(3);
}
