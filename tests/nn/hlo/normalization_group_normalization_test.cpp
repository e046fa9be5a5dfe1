#include <dist/nn/hlo/normalization.hpp>

#include <doctest/doctest.h>

#include <dist/nn/sequential.hpp>
#include <nn/hlo/check_lowering.hpp>

namespace nn = dist::nn;

TEST_CASE("normalization of groups and of layers in programs is that of plain loops, with its gradients") {
  using Images = nn::Sequential<nn::Input<2, 3, 6>, nn::GroupNormalization<3>, nn::LayerNormalization<>>;
  dist_test::check_emitted<Images>({{3}});
  using Rows = nn::Sequential<nn::Input<6>, nn::LayerNormalization<>, nn::GroupNormalization<2>>;
  dist_test::check_emitted<Rows>({{3}});
}
