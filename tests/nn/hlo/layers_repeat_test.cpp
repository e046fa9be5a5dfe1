#include <dist/nn/hlo/layers.hpp>

#include <doctest/doctest.h>

#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/sequential.hpp>
#include <nn/hlo/check_lowering.hpp>

namespace nn = dist::nn;

TEST_CASE("Repeat and Recomputed in programs, their gradients and their state match the plain loops") {
  using Block = nn::Sequential<nn::Dense<5, nn::Relu>, nn::BatchNormalization<>, nn::Dense<4>>;
  dist_test::check_emitted<nn::Sequential<nn::Input<4>, nn::Repeat<3, nn::Residual<Block>>,
                                          nn::Repeat<2, nn::Recomputed<nn::Dense<4, nn::Relu>>>, nn::Dense<2>>>(
      {{3}, {0}});
}
