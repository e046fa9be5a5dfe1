#include <dist/nn/hlo/layers.hpp>

#include <doctest/doctest.h>

#include <dist/nn/sequential.hpp>
#include <nn/hlo/check_lowering.hpp>

namespace nn = dist::nn;

TEST_CASE("GroupNormalization and LayerNormalization in programs match the plain loops, with gradients") {
  using Images = nn::Sequential<nn::Input<2, 3, 6>, nn::GroupNormalization<3>, nn::LayerNormalization<>>;
  dist_test::check_emitted<Images>({{3}});
  using Rows = nn::Sequential<nn::Input<6>, nn::LayerNormalization<>, nn::GroupNormalization<2>>;
  dist_test::check_emitted<Rows>({{3}});
}
