#include <dist/nn/hlo/layers.hpp>

#include <doctest/doctest.h>

#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/sequential.hpp>
#include <nn/hlo/check_lowering.hpp>

namespace nn = dist::nn;

TEST_CASE("Bias in programs and its gradients match the plain loops") {
  dist_test::check_emitted<nn::Sequential<nn::Input<4>, nn::Bias<>, nn::Dense<3>>>({{3}, {0}});
  dist_test::check_emitted<nn::Sequential<nn::Input<3, 4>, nn::Bias<>, nn::Dense<2>>>({{3}, {0}});
}
