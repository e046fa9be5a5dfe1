#include <dist/nn/hlo/layers.hpp>

#include <doctest/doctest.h>

#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/sequential.hpp>
#include <nn/hlo/check_lowering.hpp>

namespace nn = dist::nn;

TEST_CASE("RMSNormalization in programs and its gradients match the plain loops, for rows and pixels") {
  dist_test::check_emitted<nn::Sequential<nn::Input<5>, nn::RMSNormalization<>, nn::Dense<3>>>({{3}});
  dist_test::check_emitted<nn::Sequential<nn::Input<2, 2, 4>, nn::RMSNormalization<>>>({{3}});
}
